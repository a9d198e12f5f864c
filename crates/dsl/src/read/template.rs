//! Mappings: JSON with paths in it (W15).

use super::{Context, Field, Reported, expression, path};
use crate::{
    Code, Finding, Span,
    quote::quote,
    tree::{Entry, Kind, Node, Output, quoted, write},
};
use flotilla_engine::definition::{Expression, Part, Template};
use flotilla_engine::limits::MAPPING_PATHS_MAX;

/// Reads a mapping: a YAML mapping or list, the JSON text of one, or a single path.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    if let Kind::String(text) = &field.node.kind
        && path::is_path(text)
    {
        let path = path::read(text, field.span(), context)?;
        return Ok(Template {
            parts: vec![Part::Path(path)],
        });
    }
    let hint = hint_of(&field.node.kind, context);
    let node = field.json(hint, context)?;
    if !matches!(node.kind, Kind::Mapping(_) | Kind::Sequence(_)) {
        let finding = field.mismatch_finding(Code::E100, "a mapping, its JSON text or a path");
        return Err(context.error(finding.hint("a path begins with `$.`")));
    }
    built(field, context, |builder| write(&node, builder))
}

/// Whether a value is computed: a path, or an object with the one key `cel`.
pub(super) fn is_computed(node: &Node) -> bool {
    match &node.kind {
        Kind::String(text) => path::is_path(text),
        Kind::Mapping(entries) => matches!(&entries[..], [entry] if &*entry.key == "cel"),
        _ => false,
    }
}

/// Reads a value of any kind; in a string, only a path counts.
pub(super) fn value<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    built(field, context, |builder| write(field.node, builder))
}

/// Reads a value that differs from run to run. Warns of a literal that was probably meant to be a path.
pub(super) fn value_of_run<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    if let Kind::String(text) = &field.node.kind
        && !text.starts_with('$')
        && let Some(path) = path::meant_by(text, context)
    {
        let message = format!(
            "{} is the literal {}, which is the same for each run",
            field.place,
            quote(text)
        );
        context.warn(Finding::new(Code::E525, field.span(), message).hint(path_hint(&path)));
    }
    value(field, context)
}

/// The hint for a literal that was probably meant to be a path.
pub(super) fn hint_of(literal: &Kind, context: &Context<'_>) -> Option<String> {
    match literal {
        Kind::String(text) => path::meant_by(text, context).map(|path| path_hint(&path)),
        _ => None,
    }
}

fn path_hint(path: &str) -> String {
    format!("a path begins with `$.`: {path}")
}

/// Warns of a string in a mapping that is written like a path, but is none: `$input.a`, `${input.a}`, `{{input.a}}` or
/// `text $.input.a`.
fn warn_of_string(text: &str, span: Span, context: &mut Context<'_>) {
    let within = |before, after| text.strip_prefix(before)?.strip_suffix(after);
    let inner = within("${", "}").or_else(|| within("{{", "}}"));
    let inner = inner.map(str::trim);
    let meant = match inner {
        Some(inner) => path::marked(inner.strip_prefix('$').unwrap_or(inner), context),
        None => text
            .strip_prefix('$')
            .and_then(|text| path::meant_by(text, context)),
    };
    let hint = match meant {
        Some(path) => Some(path_hint(&path)),
        None => path_within(text, context).map(|path| {
            format!("a path is the whole string: join texts with `{{cel: …}}`, in which {path} is written without `$.`")
        }),
    };
    if let Some(hint) = hint {
        let message = format!("{} is a literal", quote(text));
        context.warn(Finding::new(Code::E525, span, message).hint(hint));
    }
}

/// The path that begins with `$.` in a word of a text, without the punctuation after it.
fn path_within(text: &str, context: &Context<'_>) -> Option<String> {
    let mut words = text.split_whitespace();
    words.find_map(|word| {
        let (_, path) = word.split_once("$.")?;
        let path = path.trim_end_matches(|one: char| one.is_ascii_punctuation() && one != ']');
        path::marked(path, context)
    })
}

/// Warns of an expression that is not alone in its object.
fn warn_of_expression(entries: &[Entry], context: &mut Context<'_>) {
    let of_expression =
        |entry: &&Entry| &*entry.key == EXPRESSION && matches!(entry.value.kind, Kind::String(_));
    if let Some(entry) = entries.iter().find(of_expression) {
        let message = format!("`{EXPRESSION}` beside other keys is a literal, not an expression");
        let hint = format!("an expression is an object whose only key is `{EXPRESSION}`");
        context.warn(Finding::new(Code::E525, entry.key_span, message).hint(hint));
    }
}

/// Reads an object whose fields are the entries of a mapping: paths and expressions in their values count.
pub(super) fn object<'doc>(
    field: &Field<'doc>,
    entries: &[Field<'doc>],
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    built(field, context, |builder| {
        for (position, entry) in entries.iter().enumerate() {
            builder.text(if position == 0 { "{" } else { "," });
            builder.text(&quoted(entry.key));
            builder.text(":");
            write(entry.node, builder);
        }
        builder.text("}");
    })
}

fn built<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
    write: impl FnOnce(&mut Builder<'_, 'doc>),
) -> Result<Template, Reported> {
    let mut builder = Builder {
        context,
        parts: Vec::new(),
        literal: String::new(),
        result: Ok(()),
    };
    write(&mut builder);
    let template = builder.finish()?;
    let paths_count = template.paths().count();
    if paths_count > MAPPING_PATHS_MAX {
        let message = format!(
            "expected at most {MAPPING_PATHS_MAX} paths in {}, but it has {paths_count}",
            field.place
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(template)
}

/// Collects literal text between paths.
struct Builder<'context, 'doc> {
    context: &'context mut Context<'doc>,
    parts: Vec<Part>,
    literal: String,
    result: Result<(), Reported>,
}

/// The key of a mapping that is an expression (W64).
const EXPRESSION: &str = "cel";

impl Builder<'_, '_> {
    fn part(&mut self, part: Part) {
        self.end_literal();
        self.parts.push(part);
    }

    /// Reads the value of `cel`, the only key of a mapping.
    fn expression(&mut self, value: &Node) -> Result<Expression, Reported> {
        match &value.kind {
            Kind::String(text) => expression::compile(text, value.span, self.context),
            _ => {
                let message = format!(
                    "expected the value of `{EXPRESSION}` to be an expression in a string, but it is {}",
                    value.describe()
                );
                Err(self.context.malformed(value.span, message))
            }
        }
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts
                .push(Part::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn finish(mut self) -> Result<Template, Reported> {
        self.end_literal();
        self.result.map(|()| Template { parts: self.parts })
    }
}

impl Output for Builder<'_, '_> {
    fn text(&mut self, json: &str) {
        self.literal.push_str(json);
    }

    fn string(&mut self, text: &str, span: Span) {
        if !path::is_path(text) {
            warn_of_string(text, span, self.context);
            self.literal.push_str(&quoted(text));
            return;
        }
        match path::read(text, span, self.context) {
            Ok(path) => self.part(Part::Path(path)),
            Err(reported) => self.result = Err(reported),
        }
    }

    fn mapping(&mut self, node: &Node) -> bool {
        let Kind::Mapping(entries) = &node.kind else {
            return false;
        };
        let [entry] = &entries[..] else {
            warn_of_expression(entries, self.context);
            return false;
        };
        if &*entry.key != EXPRESSION {
            return false;
        }
        match self.expression(&entry.value) {
            Ok(expression) => self.part(Part::Expression(expression)),
            Err(reported) => self.result = Err(reported),
        }
        true
    }
}
