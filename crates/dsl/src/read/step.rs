//! Reads a step: what it does and where its outcomes lead.

use super::{
    Context, Field, Reported,
    blocks::StepDraft,
    graph::Outline,
    policy, target, template,
    transitions::{self, Transitions},
    wait,
};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::definition::{
    BlockForm, BuiltInTerminal, RunStep, RunTarget, Step, StepExtensions, StepIndex, StepKind,
    Target,
};

/// Reads a step. Returns its outline for the lints over the whole graph even if the step has
/// errors.
pub(super) fn read<'doc>(
    draft: StepDraft<'doc>,
    context: &mut Context<'doc>,
) -> (Result<Step, Reported>, Outline<'doc>) {
    let mut outline = Outline::new(draft.label, draft.span);
    let mut fields = match draft.fields {
        Ok(fields) => fields,
        Err(reported) => {
            outline.is_complete = false;
            return (Err(reported), outline);
        }
    };
    let body = Body {
        form: draft.form,
        place: fields.place.clone(),
        span: fields.span,
        run: fields.take("run", context),
        wait: fields.take("waitForSignal", context),
        input: fields.take_any(&["inputMapping", "input"], context),
        retry: fields.take("retry", context),
        poll: fields.take("poll", context),
    };
    let transitions = transitions::read(fields.take("transitions", context), &mut outline, context);
    let known = fields.finish(context);
    // An unknown key may hide transitions, so the outline is incomplete.
    outline.is_complete &= known.is_ok();
    if draft.form == BlockForm::List {
        outline
            .edges
            .extend(edges_in_list(draft.next, &transitions));
    }
    let kind = body.kind(&transitions, &mut outline, context);
    let step = move || {
        known?;
        Ok(Step {
            name: draft.name?,
            block: draft.block,
            next: draft.next,
            kind: kind?,
            transitions: transitions.list?,
            extensions: StepExtensions::default(),
        })
    };
    (step(), outline)
}

/// Where a step of a list leads without transitions (W50a).
fn edges_in_list(
    next: Option<StepIndex>,
    transitions: &Transitions<'_>,
) -> impl Iterator<Item = Target> {
    let next = next.map_or(Target::BuiltIn(BuiltInTerminal::Completed), Target::Step);
    let failed = Target::BuiltIn(BuiltInTerminal::Failed);
    let next = (!transitions.has("success")).then_some(next);
    let failed = (!transitions.has("failure")).then_some(failed);
    next.into_iter().chain(failed)
}

/// A step's fields, except transitions, and where they are.
struct Body<'doc> {
    /// The form of the step's block.
    form: BlockForm,
    /// Describes the step in findings.
    place: String,
    span: Span,
    run: Option<Field<'doc>>,
    wait: Option<Field<'doc>>,
    input: Option<Field<'doc>>,
    retry: Option<Field<'doc>>,
    poll: Option<Field<'doc>>,
}

impl<'doc> Body<'doc> {
    fn kind(
        self,
        transitions: &Transitions<'doc>,
        outline: &mut Outline<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<StepKind, Reported> {
        match (&self.run, &self.wait) {
            (Some(run), None) => self
                .run_step(run, transitions, outline, context)
                .map(StepKind::Run),
            (None, Some(wait)) => {
                let unmixed = self.refuse_run_keys(context);
                let step = wait::read(wait, outline, context);
                if self.form == BlockForm::Graph {
                    transitions::lint_wait_step(transitions, outline, context);
                }
                unmixed?;
                step.map(StepKind::Wait)
            }
            (run, _) => {
                let found = if run.is_some() { "both" } else { "neither" };
                let message = format!(
                    "expected {} to have either `run` or `waitForSignal`, but it has {found}",
                    self.place
                );
                Err(context.malformed(self.span, message))
            }
        }
    }

    fn run_step(
        &self,
        run: &Field<'doc>,
        transitions: &Transitions<'doc>,
        outline: &Outline<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<RunStep, Reported> {
        let target = target::read(run, context);
        let input = self
            .input
            .as_ref()
            .map(|field| template::read(field, context))
            .transpose();
        let retry = self
            .retry
            .as_ref()
            .map(|field| policy::retry(field, context))
            .transpose();
        let poll = self
            .poll
            .as_ref()
            .map(|field| policy::poll(field, context))
            .transpose();
        if self.form == BlockForm::Graph {
            transitions::lint_run_step(transitions, outline, self.poll.is_some(), context);
        }
        if let Ok(RunTarget::Plan(plan)) = &target {
            let is_unnoticed = context.names.has_fallback(*plan) && !transitions.has("exhausted");
            if is_unnoticed {
                let message = format!(
                    "the fallback of the plan follows `success`, since step {} has no transition \
                     for `exhausted`",
                    quote(outline.name)
                );
                context.warn(Finding::new(Code::E509, run.span(), message));
            }
        }
        Ok(RunStep {
            target: target?,
            input: input?,
            retry: retry?,
            poll: poll?,
        })
    }

    /// Rejects keys that have no meaning with `waitForSignal`.
    fn refuse_run_keys(&self, context: &mut Context<'doc>) -> Result<(), Reported> {
        let mut result = Ok(());
        for field in [&self.input, &self.retry, &self.poll].into_iter().flatten() {
            let message = format!(
                "expected {} to have no `{}`, since it waits for a signal",
                self.place, field.key
            );
            result = Err(context.malformed(field.key_span, message));
        }
        result
    }
}
