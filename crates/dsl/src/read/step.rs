//! Reads a step: what it does and where its outcomes lead.

use super::{
    Context, Field, Reported,
    blocks::StepDraft,
    graph::Outline,
    parallel::{self, ParallelDraft},
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
    let mut outline = Outline::new(draft.label, draft.span, draft.block);
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
        parallel: draft.parallel,
        input: fields.take_any(&["inputMapping", "input"], context),
        retry: fields.take("retry", context),
        poll: fields.take("poll", context),
    };
    let transitions = transitions::read(fields.take("transitions", context), &mut outline, context);
    let known = fields.finish(context);
    // An unknown key may hide transitions, so the outline is incomplete.
    outline.is_complete &= known.is_ok();
    match draft.form {
        BlockForm::Graph => {}
        BlockForm::List => {
            let edges = edges_in_list(draft.next, &transitions);
            outline.edges.extend(edges);
        }
        BlockForm::Single if transitions.is_empty() => {
            outline
                .edges
                .push(Target::BuiltIn(BuiltInTerminal::Completed));
        }
        BlockForm::Single => {}
    }
    let kind = body.kind(&transitions, &mut outline, context);
    let step = move || {
        known?;
        Ok(Step {
            name: draft.name?,
            block: draft.block,
            next: draft.next,
            may_repeat: false,
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
    parallel: Option<Result<ParallelDraft<'doc>, Reported>>,
    input: Option<Field<'doc>>,
    retry: Option<Field<'doc>>,
    poll: Option<Field<'doc>>,
}

impl<'doc> Body<'doc> {
    fn kind(
        mut self,
        transitions: &Transitions<'doc>,
        outline: &mut Outline<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<StepKind, Reported> {
        let parallel = self.parallel.take();
        match (&self.run, &self.wait, parallel) {
            (Some(run), None, None) => self
                .run_step(run, transitions, outline, context)
                .map(StepKind::Run),
            (None, Some(wait), None) => {
                let unmixed = self.refuse_run_keys("waits for a signal", context);
                let step = wait::read(wait, outline, context);
                if self.form == BlockForm::Graph {
                    transitions::lint_wait_step(transitions, outline, context);
                }
                unmixed?;
                step.map(StepKind::Wait)
            }
            (None, None, Some(parallel)) => {
                let unmixed = self.refuse_run_keys("has branches", context);
                if self.form == BlockForm::Graph {
                    transitions::lint_run_step(transitions, outline, false, context);
                }
                let step = parallel::read(parallel?, context);
                unmixed?;
                step.map(StepKind::Parallel)
            }
            (run, wait, parallel) => {
                let keys = [
                    (run.is_some(), "`run`"),
                    (wait.is_some(), "`waitForSignal`"),
                    (parallel.is_some(), "`parallel`"),
                ];
                let keys: Vec<&str> = keys.iter().filter(|key| key.0).map(|key| key.1).collect();
                let found = match keys.is_empty() {
                    true => "no such key".to_owned(),
                    false => keys.join(" and "),
                };
                let message = format!(
                    "expected {} to have one of `run`, `waitForSignal` and `parallel`, but it has {found}",
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

    /// Rejects keys that only steps with a target have.
    fn refuse_run_keys(&self, why: &str, context: &mut Context<'doc>) -> Result<(), Reported> {
        let mut result = Ok(());
        for field in [&self.input, &self.retry, &self.poll].into_iter().flatten() {
            let message = format!(
                "expected {} to have no `{}`, since it {why}",
                self.place, field.key
            );
            result = Err(context.malformed(field.key_span, message));
        }
        result
    }
}
