//! Paths such as `$.steps.charge.output.items[0].price` (W15).

use super::{Context, Reported, context::Visible};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::definition::{Path, Root, RunFact, Segment};

/// The prefix of a path.
const PREFIX: &str = "$.";

/// Whether a string in a mapping is a path.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The roots of paths that are available in most places.
pub(super) const ROOTS: [&str; 5] = ["input", "state", "steps", "meta", "flo"];

/// The roots of paths that are available here.
fn roots_here(context: &Context<'_>) -> Vec<String> {
    let sees_result = matches!(context.visible, Visible::Result | Visible::Output);
    let further = [
        ("result", sees_result),
        ("output", context.visible == Visible::Output),
        ("error", context.sees_error().is_some()),
        ("cancel", context.sees_cancel().is_some()),
    ];
    let further = further.into_iter().filter(|(_, is_here)| *is_here);
    let known = ROOTS.into_iter().chain(further.map(|(root, _)| root));
    let known = known.filter(|root| context.visible.why_refused(root).is_none());
    let items = context.items().into_iter().map(|(name, _)| name);
    known.map(str::to_owned).chain(items).collect()
}

/// The path that a literal was probably meant to be: one that is available here and has a field, without its prefix or
/// with a part of it.
pub(super) fn meant_by(literal: &str, context: &Context<'_>) -> Option<String> {
    let path = literal.strip_prefix('$').unwrap_or(literal);
    match path.contains('.') {
        true => marked(path, context),
        false => None,
    }
}

/// The path that a part of a literal was probably meant to be, which is marked as in other languages: one that is available
/// here, without its prefix.
pub(super) fn marked(path: &str, context: &Context<'_>) -> Option<String> {
    let root = path.split(['.', '[']).next()?;
    let has_token_prefix =
        segments(path).is_ok() && roots_here(context).iter().any(|known| known == root);
    has_token_prefix.then(|| format!("{PREFIX}{path}"))
}

/// Reads a path, with or without its `$.` (E508).
pub(super) fn read(text: &str, span: Span, context: &mut Context<'_>) -> Result<Path, Reported> {
    let wrong = |why: &str| {
        Finding::new(
            Code::E508,
            span,
            format!("invalid path {}: {why}", quote(text)),
        )
    };
    let segments = match segments(text.strip_prefix(PREFIX).unwrap_or(text)) {
        Ok(segments) => segments,
        Err(why) => return Err(context.error(wrong(&why))),
    };
    let names: Vec<&str> = segments.iter().map(segment_name).collect();
    let (root, used) = match names.as_slice() {
        ["input", ..] => (Root::Input, 1),
        [first, ..] if let Some(why) = context.visible.why_refused(first) => {
            return Err(context.error(wrong(why)));
        }
        ["meta", ..] => (Root::Meta, 1),
        ["state", ..] => (Root::State, 1),
        ["result", ..] if matches!(context.visible, Visible::Result | Visible::Output) => {
            (Root::Result, 1)
        }
        ["output", ..] if context.visible == Visible::Output => (Root::Result, 1),
        ["error", ..] if let Some(root) = context.sees_error() => (root, 1),
        ["cancel", ..] if let Some(root) = context.sees_cancel() => (root, 1),
        ["steps", step, "output", ..] => (Root::StepOutput(step_index(step, &wrong, context)?), 3),
        ["steps", step, "outcome", ..] => {
            (Root::StepOutcome(step_index(step, &wrong, context)?), 3)
        }
        ["steps", ..] => {
            let finding = wrong("expected `$.steps.NAME.output` or `$.steps.NAME.outcome`");
            return Err(context.error(finding));
        }
        ["flo"] => (of_run("", &wrong, context)?, 2),
        ["flo", name, ..] => (of_run(name, &wrong, context)?, 2),
        [first, ..] if let Some(root) = item(first, context) => (root, 1),
        [first, ..] if let Some(place) = place_of(first) => {
            let why = format!("`$.{first}` is available only in {place}");
            return Err(context.error(wrong(&why)));
        }
        _ => {
            let roots = roots_here(context);
            let first = names.first().copied().unwrap_or_default();
            let nearest = context.nearest(first, roots.iter().map(String::as_str));
            let finding = wrong(&format!("expected it to begin with {}", one_of(&roots)));
            return Err(context.error(finding.suggest(nearest)));
        }
    };
    if !has_fields(root) && segments.len() > used {
        return Err(context.error(wrong(&format!("nothing can follow `{}`", names[used - 1]))));
    }
    Ok(Path {
        root,
        segments: segments.into_iter().skip(used).collect(),
    })
}

/// Roots, as text.
fn one_of(roots: &[String]) -> String {
    let roots: Vec<String> = roots.iter().map(|root| format!("`$.{root}`")).collect();
    match &roots[..] {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        roots => roots.concat(),
    }
}

/// Whether a path can lead into what stands at a root.
fn has_fields(root: Root) -> bool {
    match root {
        Root::Input
        | Root::StepOutput(_)
        | Root::State
        | Root::Meta
        | Root::Result
        | Root::Item(_)
        | Root::Error
        | Root::EndCause => true,
        Root::StepOutcome(_)
        | Root::RunId
        | Root::Timestamp
        | Root::Run(_)
        | Root::ItemIndex(_) => false,
    }
}

/// What `$.flo.NAME` stands for.
fn of_run(
    name: &str,
    wrong: &impl Fn(&str) -> Finding,
    context: &mut Context<'_>,
) -> Result<Root, Reported> {
    let facts = RunFact::ALL.into_iter();
    let facts = facts.map(|fact| (fact.name(), Root::Run(fact)));
    let others = [("run_id", Root::RunId), ("timestamp", Root::Timestamp)];
    let known: Vec<(&str, Root)> = others.into_iter().chain(facts).collect();
    if let Some((_, root)) = known.iter().find(|(known, _)| *known == name) {
        return Ok(*root);
    }
    let names = known.iter().map(|(name, _)| *name);
    let nearest = context.nearest(name, names.clone());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let why = format!(
        "expected `$.flo` to be followed by one of {}",
        names.join(", ")
    );
    Err(context.error(wrong(&why).suggest(nearest)))
}

/// Where a name means something that does not mean anything everywhere.
fn place_of(name: &str) -> Option<&'static str> {
    match name {
        "result" => Some("`set`, and in `output` of a step or `output.extract` of the workflow"),
        "error" => Some("`onError` and the `inputMapping` of a fallback"),
        "cancel" => Some("the `onCancel` of the workflow"),
        "output" => Some("the `inputMapping` of a compensation"),
        "item" | "index" => Some("the block of a `forEach`"),
        _ => None,
    }
}

fn step_index(
    name: &str,
    wrong: &impl Fn(&str) -> Finding,
    context: &mut Context<'_>,
) -> Result<flotilla_engine::definition::StepIndex, Reported> {
    if let Some(step) = context.names.step(name) {
        return match context.names.hiding(step, context.block()) {
            None => Ok(step),
            Some(hiding) => {
                let why = hidden(name, context.names.name(hiding));
                let finding = wrong(&why);
                let code = Code::E511;
                Err(context.error(Finding { code, ..finding }))
            }
        };
    }
    let nearest = context.nearest_step(name);
    Err(context
        .error(wrong(&format!("there is no step {}", quote(name))).suggest(nearest.as_deref())))
}

/// Explains why a step is not visible (E511).
pub(super) fn hidden(step: &str, hiding: &str) -> String {
    format!(
        "step {} is visible only in the block of {}",
        quote(step),
        quote(hiding)
    )
}

/// The meaning of a name, if it is that of an item or index.
fn item(name: &str, context: &Context<'_>) -> Option<Root> {
    let items = context.items().into_iter();
    let mut named = items.filter(|(known, _)| known == name);
    named.next().map(|(_, root)| root)
}

fn segment_name(segment: &Segment) -> &str {
    match segment {
        Segment::Field(name) => name,
        Segment::Index(_) => "[]",
    }
}

/// Splits `a.b[0].c`; the error explains why it cannot.
pub(super) fn segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments = Vec::new();
    for (position, piece) in text.split('.').enumerate() {
        let (name, mut rest) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
        if name.is_empty() {
            return Err(format!(
                "expected a field name at position {} of it",
                position + 1
            ));
        }
        if let Some(character) = name.chars().find(|c| is_forbidden(*c)) {
            return Err(format!(
                "expected a field name, but {} holds {character:?}",
                quote(name)
            ));
        }
        segments.push(Segment::Field(name.to_owned()));
        while !rest.is_empty() {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (index, after) =
                index.ok_or_else(|| format!("expected `[index]`, but found {}", quote(rest)))?;
            let is_digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
            let number = index.parse().ok().filter(|_| is_digits);
            let number = number.ok_or_else(|| {
                format!(
                    "expected a whole number in `[]`, but found {}",
                    quote(index)
                )
            })?;
            segments.push(Segment::Index(number));
            rest = after;
        }
    }
    Ok(segments)
}

/// Prose that happens to begin like a path must not become one that is silently null.
fn is_forbidden(character: char) -> bool {
    character.is_whitespace() || character.is_control() || "]{}$\"'".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match segments(text) {
            Err(why) => why,
            Ok(segments) => segments
                .iter()
                .map(|segment| match segment {
                    Segment::Field(name) => format!(".{name}"),
                    Segment::Index(index) => format!("[{index}]"),
                })
                .collect(),
        }
    }

    #[test]
    fn fields_and_indexes_are_distinguished() {
        assert_eq!(
            shown("input.items[0][12].price-net"),
            ".input.items[0][12].price-net"
        );
        assert_eq!(shown("input.größe"), ".input.größe");
    }

    #[test]
    fn an_invalid_path_is_explained() {
        assert_eq!(
            shown("input..a"),
            "expected a field name at position 2 of it"
        );
        assert_eq!(shown("input."), "expected a field name at position 2 of it");
        assert_eq!(
            shown("input.a[x]"),
            "expected a whole number in `[]`, but found \"x\""
        );
        assert_eq!(shown("input.a[1"), "expected `[index]`, but found \"[1\"");
        assert_eq!(shown("input.a[1]b"), "expected `[index]`, but found \"b\"");
        assert_eq!(
            shown("input.a[4294967296]"),
            "expected a whole number in `[]`, but found \"4294967296\""
        );
        assert_eq!(
            shown("50 discount"),
            "expected a field name, but \"50 discount\" holds ' '"
        );
        assert_eq!(shown(""), "expected a field name at position 1 of it");
    }
}
