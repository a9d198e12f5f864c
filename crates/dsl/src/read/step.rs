//! Reads a step: what it does and where its outcomes lead.

mod kind_field;
mod policies;

use super::{
    Context, Field, Reported, approval,
    blocks::StepDraft,
    call, emit, expression,
    for_each::{self, ForEachDraft},
    graph::Outline,
    output,
    parallel::{self, ParallelDraft},
    poll, retry, state,
    switch::{self, SwitchFields},
    target, template,
    timeouts::TimeoutFields,
    timer,
    transitions::{self, Transitions, WorkStepEnding},
    wait,
};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::definition::{
    BlockForm, BlockStep, Branch, BuiltInTerminal, Call, RunStep, RunTarget, Setting, Step,
    StepExtensions, StepIndex, StepKind, Target,
};
use kind_field::KindField;

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
    let opening = [
        draft.parallel.map(KindField::Parallel),
        draft.body.map(KindField::Block),
        draft.for_each.map(KindField::ForEach),
    ];
    let mut kinds = KindField::all(opening, &mut fields, context);
    let set = fields.take("set", context);
    if kinds.is_empty() && set.is_some() {
        kinds.push(KindField::Set);
    }
    let set = set.map(|field| {
        let writes = state::writes(&field, context);
        if let Ok(writes) = &writes {
            state::warn_lost_updates(field.key_span, writes, context);
        }
        (field.key_span, writes)
    });
    let skip_if = fields.take_any(&["skipIf", "skip"], context);
    let body = Body {
        form: draft.form,
        place: fields.place.clone(),
        span: fields.span,
        kinds,
        set_span: set.as_ref().map(|(span, _)| *span),
        input: fields.take_any(&["inputMapping", "input"], context),
        retry: fields.take("retry", context),
        poll: fields.take("poll", context),
        output: fields.take("output", context),
        fallback: fields.take("fallback", context),
        tracking: fields.take("tracking", context),
        compensate: fields.take("compensate", context),
        cancellation: fields.take("cancellation", context),
        on_cancel: fields.take("onCancel", context),
        timeouts: TimeoutFields::take(&mut fields, context),
        default: fields.take("default", context),
        is_skipped: skip_if.is_some(),
    };
    let skip_if = skip_if.map(|field| expression::read(&field, context));
    let transitions = transitions::read(fields.take("transitions", context), &mut outline, context);
    let known = fields.finish(context);
    // An unknown key may hide transitions, so the outline is incomplete.
    outline.is_complete &= known.is_ok();
    let unnamed = body.edges_without_transitions(draft.next, &transitions);
    outline.edges.extend(unnamed);
    let on_cancel = body.on_cancel(context);
    let kind = body.kind(&transitions, &mut outline, context);
    let step = move || {
        known?;
        Ok(Step {
            name: draft.name?,
            block: draft.block,
            next: draft.next,
            may_repeat: false,
            skip_if: skip_if.transpose()?,
            set: set.map(|(_, writes)| writes).transpose()?,
            on_cancel: on_cancel?.map(Box::new),
            kind: kind?,
            transitions: transitions.list?,
            extensions: StepExtensions::default(),
        })
    };
    (step(), outline)
}

/// A step's fields, except transitions, and where they are.
struct Body<'doc> {
    /// The form of the step's block.
    form: BlockForm,
    /// Describes the step in findings.
    place: String,
    span: Span,
    /// The keys that say what the step does; there must be one.
    kinds: Vec<KindField<'doc>>,
    input: Option<Field<'doc>>,
    retry: Option<Field<'doc>>,
    poll: Option<Field<'doc>>,
    output: Option<Field<'doc>>,
    fallback: Option<Field<'doc>>,
    tracking: Option<Field<'doc>>,
    compensate: Option<Field<'doc>>,
    cancellation: Option<Field<'doc>>,
    on_cancel: Option<Field<'doc>>,
    timeouts: TimeoutFields<'doc>,
    default: Option<Field<'doc>>,
    /// Where its `set` is, if it has one.
    set_span: Option<Span>,
    /// Whether it has a `skipIf`.
    is_skipped: bool,
}

impl<'doc> Body<'doc> {
    /// Where the outcomes lead that have no transition (W50a).
    fn edges_without_transitions(
        &self,
        next: Option<StepIndex>,
        transitions: &Transitions<'doc>,
    ) -> Vec<Target> {
        let end = Target::BuiltIn(BuiltInTerminal::Completed);
        match self.form {
            BlockForm::Graph => Vec::new(),
            BlockForm::Single if transitions.is_empty() => vec![end],
            BlockForm::Single => Vec::new(),
            BlockForm::List => {
                let good = self.outcomes_that_continue();
                let leads_on = good.iter().all(|outcome| !transitions.has(outcome));
                let leads_on = leads_on && !good.is_empty();
                let next = leads_on.then(|| next.map_or(end, Target::Step));
                let failed = Target::BuiltIn(BuiltInTerminal::Failed);
                let failed = (!transitions.has("failure")).then_some(failed);
                next.into_iter().chain(failed).collect()
            }
        }
    }

    /// The outcomes that lead on in a list, unless one of them has a transition; none for a switch with a default.
    fn outcomes_that_continue(&self) -> &'static [&'static str] {
        match (&self.kinds[..], &self.default) {
            ([KindField::Switch(_)], None) => &["no_match"],
            ([KindField::Switch(_)], Some(_)) => &[],
            ([KindField::Approval(_)], _) => &["approved", "success"],
            _ => &["success"],
        }
    }

    fn kind(
        mut self,
        transitions: &Transitions<'doc>,
        outline: &mut Outline<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<StepKind, Reported> {
        if self.kinds.len() != 1 {
            return Err(self.refuse_kinds(context));
        }
        let in_graph = self.form == BlockForm::Graph;
        if in_graph && self.is_skipped && self.default.is_none() && !transitions.is_empty() {
            let is_approval = matches!(self.kinds[..], [KindField::Approval(_)]);
            transitions::lint_skipped_step(transitions, is_approval, outline, context);
        }
        let field = self.kinds.remove(0);
        let unmixed = self.refuse_keys_of_other_kinds(&field, context);
        self.lint_transitions(&field, transitions, outline, context);
        let kind = match field {
            KindField::Run(run) => self
                .run_step(&run, transitions, outline, context)
                .map(|step| StepKind::Run(Box::new(step))),
            KindField::Wait(wait) => wait::read(&wait, outline, context).map(StepKind::Wait),
            KindField::Parallel(parallel) => self.parallel_step(parallel, context),
            KindField::Block(body) => self.block_step(body, context).map(StepKind::Block),
            KindField::ForEach(draft) => self.for_each_step(draft, context),
            KindField::Set => Ok(StepKind::Set),
            KindField::Emit(emit) => emit::read(&emit, context).map(StepKind::Emit),
            KindField::Timer(timer) => timer::read(&timer, context).map(StepKind::Timer),
            KindField::Approval(approval) => {
                approval::read(&approval, outline, context).map(StepKind::Approval)
            }
            KindField::Switch(arms) => {
                let fields = SwitchFields {
                    arms: &arms,
                    default: self.default.as_ref(),
                };
                switch::read(&fields, outline, context).map(StepKind::Switch)
            }
        };
        unmixed?;
        kind
    }

    /// Warns of outcomes without a transition, and of transitions that are never taken.
    fn lint_transitions(
        &self,
        field: &KindField<'doc>,
        transitions: &Transitions<'doc>,
        outline: &mut Outline<'doc>,
        context: &mut Context<'doc>,
    ) {
        if let Some(possible) = field.possible_outcomes(self.default.is_some()) {
            let what = field.what_the_step_does();
            let outcomes = transitions::Outcomes { possible, what };
            transitions::lint_never_taken(transitions, outline, outcomes, context);
        }
        if self.form != BlockForm::Graph {
            return;
        }
        match field {
            KindField::Run(_)
            | KindField::Parallel(_)
            | KindField::Block(_)
            | KindField::ForEach(_) => {
                let ending = WorkStepEnding {
                    outcome_source: field.outcome_source(),
                    is_polling: self.poll.is_some(),
                    has_timeout: self.timeouts.all().next().is_some(),
                };
                transitions::lint_work_step(transitions, outline, ending, context);
            }
            KindField::Wait(_) | KindField::Set | KindField::Emit(_) | KindField::Timer(_) => {
                transitions::lint_wait_step(transitions, outline, context);
            }
            KindField::Approval(_) => transitions::lint_approval(transitions, outline, context),
            KindField::Switch(_) => {
                let has_default = self.default.is_some();
                transitions::lint_switch(transitions, outline, has_default, context);
            }
        }
    }

    /// Rejects keys that only steps of other kinds have.
    fn refuse_keys_of_other_kinds(
        &self,
        field: &KindField<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let what = field.what_the_step_does();
        let of_run = match field {
            KindField::Run(_) => Ok(()),
            _ => self.refuse_run_keys(what, field, context),
        };
        let default = match field {
            KindField::Switch(_) => Ok(()),
            _ => self.refuse_default(context),
        };
        let set = match field {
            KindField::Run(_) | KindField::Wait(_) | KindField::Approval(_) | KindField::Set => {
                Ok(())
            }
            KindField::Parallel(_)
            | KindField::Block(_)
            | KindField::ForEach(_)
            | KindField::Switch(_)
            | KindField::Emit(_)
            | KindField::Timer(_) => self.refuse_set(what, context),
        };
        of_run.and(default).and(set)
    }

    /// Rejects a step with no or several keys that say what it does.
    fn refuse_kinds(&self, context: &mut Context<'doc>) -> Reported {
        let keys: Vec<&str> = self.kinds.iter().map(KindField::key).collect();
        let found = match keys.is_empty() {
            true => "no such key".to_owned(),
            false => keys.join(" and "),
        };
        let (last, others) = KindField::KEYS.split_last().expect("there are keys");
        let message = format!(
            "expected {} to have one of {} and {last}, but it has {found}",
            self.place,
            others.join(", ")
        );
        context.malformed(self.span, message)
    }

    fn parallel_step(
        &self,
        draft: Result<ParallelDraft<'doc>, Reported>,
        context: &mut Context<'doc>,
    ) -> Result<StepKind, Reported> {
        let timeout_ms = self.timeouts.of_blocks(context);
        let compensates = self.compensates_blocks(context);
        let mut step = parallel::read(draft?, context)?;
        step.timeout_ms = timeout_ms?;
        step.compensates = compensates?;
        Ok(StepKind::Parallel(step))
    }

    fn for_each_step(
        &self,
        draft: Result<ForEachDraft<'doc>, Reported>,
        context: &mut Context<'doc>,
    ) -> Result<StepKind, Reported> {
        let timeout_ms = self.timeouts.of_blocks(context);
        let compensates = self.compensates_blocks(context);
        let mut step = for_each::read(draft?, context)?;
        step.timeout_ms = timeout_ms?;
        step.compensates = compensates?;
        Ok(StepKind::ForEach(step))
    }

    fn block_step(
        &self,
        body: Result<Branch, Reported>,
        context: &mut Context<'doc>,
    ) -> Result<BlockStep, Reported> {
        let retry = self.retry.as_ref();
        let retry = retry
            .map(|field| retry::of_block(field, context))
            .transpose();
        let timeout_ms = self.timeouts.of_blocks(context);
        let compensates = self.compensates_blocks(context);
        Ok(BlockStep {
            body: body?,
            retry: retry?.flatten(),
            timeout_ms: timeout_ms?,
            compensates: compensates?,
        })
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
        let retry = self.retry.as_ref();
        let retry = retry
            .map(|field| retry::setting(field, context))
            .transpose();
        let poll = self
            .poll
            .as_ref()
            .map(|field| poll::read(field, context))
            .transpose();
        let output = self
            .output
            .as_ref()
            .map(|field| output::read(field, context))
            .transpose();
        let timeouts = self.timeouts.of_call(target.as_ref().ok(), context);
        let fallback = self.fallback.as_ref();
        let fallback = fallback
            .map(|field| call::fallback(field, context))
            .transpose();
        let compensation = self.compensate.as_ref();
        let compensation = compensation
            .map(|field| call::compensation(field, context))
            .transpose();
        let is_abandoned = self.is_abandoned(context);
        let tracking = self.tracking(target.as_ref().ok(), context);
        if let Ok(RunTarget::Plan(plan)) = &target {
            let is_unnoticed = context.names.has_fallback(*plan) && !transitions.has("exhausted");
            if is_unnoticed {
                let message = format!(
                    "the fallback of the plan follows `success`, since step {} has no transition \
                     for `exhausted`",
                    quote(&outline.name)
                );
                context.warn(Finding::new(Code::E509, run.span(), message));
            }
        }
        let (fallback, fallback_compensation) = match fallback? {
            Some(fallback) => (Some(fallback.call), fallback.compensation),
            None => (None, None),
        };
        Ok(RunStep {
            call: Call {
                target: target?,
                input: input?,
                retry: retry?.unwrap_or_default(),
                timeouts: timeouts?.map_or(Setting::Default, Setting::Own),
            },
            poll: poll?,
            output: output?,
            fallback,
            is_abandoned: is_abandoned?,
            tracking: tracking?,
            compensation: compensation?,
            fallback_compensation,
        })
    }

    /// Reads whether what was done in the blocks of the step is undone when it ends badly (W82a).
    fn compensates_blocks(&self, context: &mut Context<'doc>) -> Result<bool, Reported> {
        match &self.compensate {
            Some(field) => field.boolean(context),
            None => Ok(false),
        }
    }

    /// Rejects keys that only steps with a target have, and those that this kind of step does not share with them.
    fn refuse_run_keys(
        &self,
        why: &str,
        kind: &KindField<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let mut result = Ok(());
        let retry = self.retry.as_ref().filter(|_| !kind.takes_retry());
        let of_run = [
            &self.input,
            &self.poll,
            &self.output,
            &self.fallback,
            &self.tracking,
            &self.cancellation,
        ];
        let timeouts: Vec<&Field<'doc>> = match kind.opens_blocks() {
            true => self.timeouts.of_calls().into_iter().collect(),
            false => self.timeouts.all().collect(),
        };
        let compensate = self.compensate.as_ref().filter(|_| !kind.opens_blocks());
        let refused = of_run.into_iter().flatten().chain(retry).chain(compensate);
        for field in refused.chain(timeouts) {
            let message = format!(
                "expected {} to have no `{}`, since it {why}",
                self.place, field.key
            );
            result = Err(context.malformed(field.key_span, message));
        }
        result
    }

    /// Rejects values of the state where no attempt or signal gives them.
    fn refuse_set(&self, why: &str, context: &mut Context<'doc>) -> Result<(), Reported> {
        let Some(span) = self.set_span else {
            return Ok(());
        };
        let message = format!("expected {} to have no `set`, since it {why}", self.place);
        Err(context.malformed(span, message))
    }

    /// Rejects the key that only switches have.
    fn refuse_default(&self, context: &mut Context<'doc>) -> Result<(), Reported> {
        let Some(field) = &self.default else {
            return Ok(());
        };
        let message = format!(
            "expected {} to have no `default`, since it is not a switch",
            self.place
        );
        Err(context.malformed(field.key_span, message))
    }
}
