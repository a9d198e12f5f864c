//! Transitions: where outcomes lead (W11), and outcomes without a transition (E502).

use super::{Context, Field, Reported, graph::Outline};
use crate::{Code, Finding, Span, quote::quote, suggest::is_misspelling_of};
use flotilla_engine::{
    definition::{BlockIndex, Target, Transition},
    ids::OutcomeName,
    limits::ENDS_MAX,
};

/// The prefix of a named end of a nested block (W51).
const END: &str = "flo.End.";

/// A step's `transitions` block.
pub(super) struct Transitions<'doc> {
    pub(super) list: Result<Vec<Transition>, Reported>,
    /// The outcomes named, with their spans; `None` if the block cannot be read at all.
    outcomes: Option<Vec<(&'doc str, Span)>>,
}

impl Transitions<'_> {
    /// Whether the block is missing or empty.
    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether the outcome has a transition, or might have one if the block were readable.
    pub(super) fn has(&self, outcome: &str) -> bool {
        self.outcomes
            .as_ref()
            .is_none_or(|outcomes| outcomes.iter().any(|(name, _)| *name == outcome))
    }
}

/// Reads the block, which is optional.
pub(super) fn read<'doc>(
    field: Option<Field<'doc>>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Transitions<'doc> {
    let Some(field) = field else {
        return Transitions {
            list: Ok(Vec::new()),
            outcomes: Some(Vec::new()),
        };
    };
    let entries = match field.entries(context) {
        Ok(entries) => entries,
        Err(reported) => {
            outline.is_complete = false;
            return Transitions {
                list: Err(reported),
                outcomes: None,
            };
        }
    };
    let outcomes = entries
        .iter()
        .map(|entry| (entry.key, entry.key_span))
        .collect();
    let transitions: Vec<Result<Transition, Reported>> = entries
        .iter()
        .map(|entry| {
            let outcome = OutcomeName::new(entry.key)
                .map_err(|error| context.malformed(entry.key_span, error.to_string()));
            let target = target(entry, outline, context);
            Ok(Transition {
                outcome: outcome?,
                target: target?,
            })
        })
        .collect();
    Transitions {
        list: transitions.into_iter().collect(),
        outcomes: Some(outcomes),
    }
}

/// Reads the target of a transition or an `onTimeout`, and records the edge (E201).
pub(super) fn target<'doc>(
    field: &Field<'doc>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<Target, Reported> {
    let text = match field.string(context) {
        Ok(text) => text,
        Err(reported) => {
            outline.is_complete = false;
            return Err(reported);
        }
    };
    if let Some(target) = context.names.target(text) {
        outline.edges.push(target);
        return within_block(target, field, outline, context);
    }
    if let Some(name) = text.strip_prefix(END)
        && outline.block != BlockIndex::ROOT
    {
        let target = named_end(name, field, context)?;
        outline.edges.push(target);
        return Ok(target);
    }
    let built_in = format!("flo.{text}");
    let is_built_in = context.names.target(&built_in).is_some();
    let nearest = match is_built_in {
        true => Some(built_in),
        false => context.nearest_target(text),
    };
    let nearest = nearest.as_deref();
    // The lints over the graph use the target that was probably meant; otherwise one misspelt name
    // would make every step behind it unreachable too.
    match nearest.and_then(|nearest| context.names.target(nearest)) {
        Some(meant) => outline.edges.push(meant),
        None => outline.is_complete = false,
    }
    let message = format!(
        "expected {} to lead to a step or terminal, but there is no {}",
        field.place,
        quote(text)
    );
    let finding = Finding::new(Code::E201, field.span(), message);
    let ends_only_block =
        outline.block != BlockIndex::ROOT && context.names.handler_around(outline.block).is_none();
    let use_instead = |terminal: &str| match ends_only_block {
        true => format!("use a custom terminal, since `{terminal}` ends only the block"),
        false => format!("use `{terminal}`"),
    };
    Err(context.error(match text {
        "onError" => finding.hint(format!(
            "`onError` is executed before a run ends failed: {}",
            use_instead("flo.Failed")
        )),
        "onCancel" => finding.hint(format!(
            "`onCancel` is executed before a run ends cancelled: {}",
            use_instead("flo.Cancelled")
        )),
        _ => finding.suggest(nearest),
    }))
}

/// The end of a nested block with an outcome that the definition names (W51).
fn named_end<'doc>(
    name: &str,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Target, Reported> {
    let outcome = OutcomeName::new(name);
    let outcome = outcome.map_err(|error| context.malformed(field.span(), error.to_string()))?;
    if outcome.is_execution_level() {
        let message = format!(
            "expected {} to name an outcome that a block may have, but only the engine gives `{name}`",
            field.place
        );
        return Err(context.error(Finding::new(Code::E201, field.span(), message)));
    }
    let end = context.names.end(outcome);
    end.map(Target::End).ok_or_else(|| {
        let message = format!(
            "expected at most {ENDS_MAX} different outcomes of `flo.End`, but this is one more"
        );
        context.malformed(field.span(), message)
    })
}

/// Refuses a transition out of the step's block (E515).
fn within_block<'doc>(
    target: Target,
    field: &Field<'doc>,
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<Target, Reported> {
    let step = match target {
        Target::Step(step) => step,
        Target::Custom(_) if context.names.handler_around(outline.block).is_some() => {
            let message = format!(
                "expected {} to stay in its handler, but it leads to a custom terminal, which ends the run",
                field.place
            );
            let finding = Finding::new(Code::E515, field.span(), message);
            let hint = "the end of the run is decided already: use `flo.Completed` or `flo.Failed`";
            return Err(context.error(finding.hint(hint)));
        }
        Target::BuiltIn(_) | Target::Custom(_) | Target::End(_) => return Ok(target),
    };
    if context.names.block(step) == outline.block {
        return Ok(target);
    }
    let message = format!(
        "expected {} to lead to a step of the same block, but it leads out of it",
        field.place
    );
    let hint = "a block ends at `flo.Completed`, `flo.Failed` or `flo.End.NAME`";
    let finding = Finding::new(Code::E515, field.span(), message);
    Err(context.error(finding.hint(hint)))
}

/// What gives a step its outcome once its work is done.
#[derive(Clone, Copy)]
pub(super) enum OutcomeSource {
    /// Its target: `success`, or another outcome.
    Target,
    /// Its block: `success`, or an outcome that the definition names.
    Block,
    /// Nothing: it is `success`.
    Nothing,
}

impl OutcomeSource {
    /// Whether it may choose this outcome, which is not `success`, once the work is done.
    fn may_choose(self, name: &str, is_polling: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Block => !WORK_UNFINISHED.contains(&name),
            Self::Target => {
                let is_poll = is_polling && name == "pending";
                !(WORK_UNFINISHED.contains(&name)
                    || WORK_UNFINISHED_BY_TARGET.contains(&name)
                    || is_poll)
            }
        }
    }
}

/// The outcomes of a step that has not done its work.
const WORK_UNFINISHED: [&str; 6] = [
    "cancelled",
    "execution_failure",
    "failure",
    "target_disabled",
    "target_not_found",
    "timeout",
];
/// With a target, these too mean unfinished work. A block may end with them.
const WORK_UNFINISHED_BY_TARGET: [&str; 3] = ["exhausted", "retry_run", "skipped"];

/// What can end a step with a target or blocks.
#[derive(Clone, Copy)]
pub(super) struct WorkStepEnding {
    pub(super) outcome_source: OutcomeSource,
    /// Whether it polls.
    pub(super) is_polling: bool,
    /// Whether a timeout limits it.
    pub(super) has_timeout: bool,
}

/// E502 for a step that runs a target or blocks.
pub(super) fn lint_work_step<'doc>(
    transitions: &Transitions<'doc>,
    outline: &Outline<'doc>,
    ending: WorkStepEnding,
    context: &mut Context<'doc>,
) {
    let WorkStepEnding {
        is_polling,
        has_timeout,
        outcome_source: _,
    } = ending;
    let Some(outcomes) = &transitions.outcomes else {
        return;
    };
    if warn_without_any(outcomes, outline, context) {
        return;
    }
    if !leads_on(outcomes, ending) {
        warn_missing("success", outline, context);
    }
    if !transitions.has("failure") {
        warn_missing("failure", outline, context);
    }
    if (is_polling || has_timeout) && !transitions.has("timeout") {
        warn_missing("timeout", outline, context);
    }
    if let Some((_, span)) = outcomes
        .iter()
        .find(|(name, _)| is_polling && *name == "pending")
    {
        let message = format!(
            "the transition `pending` of step {} is never taken, since the step polls",
            quote(&outline.name)
        );
        context.warn(Finding::new(Code::E502, *span, message));
    }
}

/// Whether a transition follows once the work is done: for `success`, or for another outcome that may be chosen.
fn leads_on(outcomes: &[(&str, Span)], ending: WorkStepEnding) -> bool {
    let success = "success";
    outcomes.iter().any(|(name, _)| {
        let is_chosen = ending.outcome_source.may_choose(name, ending.is_polling);
        *name == success || (is_chosen && !is_misspelling_of(name, success))
    })
}

/// E502 for a switch in a graph.
pub(super) fn lint_switch<'doc>(
    transitions: &Transitions<'doc>,
    outline: &Outline<'doc>,
    has_default: bool,
    context: &mut Context<'doc>,
) {
    if !has_default && !transitions.has("no_match") {
        let message = format!(
            "step {} has no `default`: the {} fails if no condition is true",
            quote(&outline.name),
            what_fails(outline)
        );
        context.warn(Finding::new(Code::E502, outline.span, message).hint("add `default`"));
    }
}

/// The outcomes with which a step of some kind may end.
#[derive(Clone, Copy)]
pub(super) struct Outcomes {
    pub(super) possible: &'static [&'static str],
    /// Completes "since the step …".
    pub(super) what: &'static str,
}

/// E502 for transitions that are never taken.
pub(super) fn lint_never_taken<'doc>(
    transitions: &Transitions<'doc>,
    outline: &Outline<'doc>,
    outcomes: Outcomes,
    context: &mut Context<'doc>,
) {
    let Outcomes { possible, what } = outcomes;
    for (outcome, span) in transitions.outcomes.iter().flatten() {
        if possible.contains(outcome) {
            continue;
        }
        let message = format!(
            "the transition `{outcome}` of step {} is never taken, since the step {what}",
            quote(&outline.name)
        );
        let nearest = context.nearest(outcome, possible.iter().copied());
        context.warn(Finding::new(Code::E502, *span, message).suggest(nearest));
    }
}

/// E502 for a step in a graph that may be skipped.
pub(super) fn lint_skipped_step<'doc>(
    transitions: &Transitions<'doc>,
    is_approval: bool,
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) {
    let mut leads_on = ["skipped", "success"]
        .into_iter()
        .chain(is_approval.then_some("approved"));
    if !leads_on.any(|outcome| transitions.has(outcome)) {
        warn_missing("skipped", outline, context);
    }
}

/// E502 for a step that waits for a signal.
pub(super) fn lint_wait_step<'doc>(
    transitions: &Transitions<'doc>,
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) {
    let Some(outcomes) = &transitions.outcomes else {
        return;
    };
    if !warn_without_any(outcomes, outline, context) && !transitions.has("success") {
        warn_missing("success", outline, context);
    }
}

/// E502 for an approval in a graph. `success` covers `approved`, and `failure` covers `rejected`.
pub(super) fn lint_approval<'doc>(
    transitions: &Transitions<'doc>,
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) {
    let Some(outcomes) = &transitions.outcomes else {
        return;
    };
    if warn_without_any(outcomes, outline, context) {
        return;
    }
    for (outcome, other) in [("approved", "success"), ("rejected", "failure")] {
        if !transitions.has(outcome) && !transitions.has(other) {
            warn_missing(outcome, outline, context);
        }
    }
}

fn warn_without_any<'doc>(
    outcomes: &[(&str, Span)],
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) -> bool {
    if outcomes.is_empty() && outline.is_complete {
        let message = format!(
            "step {} has no transitions: the {} fails when the step ends",
            quote(&outline.name),
            what_fails(outline)
        );
        context.warn(Finding::new(Code::E502, outline.span, message));
    }
    outcomes.is_empty()
}

/// What an outcome without a transition lets fail.
fn what_fails(outline: &Outline<'_>) -> &'static str {
    if outline.block == BlockIndex::ROOT {
        "run"
    } else {
        "block"
    }
}

fn warn_missing<'doc>(outcome: &str, outline: &Outline<'doc>, context: &mut Context<'doc>) {
    let message = format!(
        "outcome `{outcome}` of step {} has no transition: the {} fails there",
        quote(&outline.name),
        what_fails(outline)
    );
    let finding = Finding::new(Code::E502, outline.span, message);
    context.warn(finding.hint(format!("add a transition for `{outcome}`")));
}
