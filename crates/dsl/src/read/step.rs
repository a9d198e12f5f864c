//! Reads a step: what it does and where its outcomes lead.

use super::{
    Context, Field, Reported,
    blocks::StepDraft,
    expression,
    graph::Outline,
    parallel::{self, ParallelDraft},
    policy, state,
    switch::{self, SwitchFields},
    target, template,
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
    let run = fields.take("run", context).map(KindField::Run);
    let wait = fields.take("waitForSignal", context).map(KindField::Wait);
    let parallel = draft.parallel.map(KindField::Parallel);
    let arms = fields.take_any(&["switch", "arms"], context);
    let set = fields.take("set", context);
    let mut kinds: Vec<KindField<'doc>> = [run, wait, parallel, arms.map(KindField::Switch)]
        .into_iter()
        .flatten()
        .collect();
    if kinds.is_empty() && set.is_some() {
        kinds.push(KindField::Set);
    }
    let set = set.map(|field| (field.key_span, state::writes(&field, context)));
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
    default: Option<Field<'doc>>,
    /// Where its `set` is, if it has one.
    set_span: Option<Span>,
    /// Whether it has a `skipIf`.
    is_skipped: bool,
}

/// A key that says what a step does.
enum KindField<'doc> {
    Run(Field<'doc>),
    Wait(Field<'doc>),
    Parallel(Result<ParallelDraft<'doc>, Reported>),
    Switch(Field<'doc>),
    /// Only `set`.
    Set,
}

impl KindField<'_> {
    /// All keys.
    const KEYS: [&'static str; 5] = [
        "`run`",
        "`waitForSignal`",
        "`parallel`",
        "`switch`",
        "`set`",
    ];

    fn key(&self) -> &'static str {
        let [run, wait, parallel, switch, set] = Self::KEYS;
        match self {
            Self::Run(_) => run,
            Self::Wait(_) => wait,
            Self::Parallel(_) => parallel,
            Self::Switch(_) => switch,
            Self::Set => set,
        }
    }
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
                let leads_on = self.success_in_list();
                let leads_on = leads_on.filter(|outcome| !transitions.has(outcome));
                let next = leads_on.map(|_| next.map_or(end, Target::Step));
                let failed = Target::BuiltIn(BuiltInTerminal::Failed);
                let failed = (!transitions.has("failure")).then_some(failed);
                next.into_iter().chain(failed).collect()
            }
        }
    }

    /// The outcome that leads on in a list, unless it has a transition; `None` for a switch with a default.
    fn success_in_list(&self) -> Option<&'static str> {
        let is_switch = matches!(self.kinds[..], [KindField::Switch(_)]);
        match (is_switch, &self.default) {
            (false, _) => Some("success"),
            (true, None) => Some("no_match"),
            (true, Some(_)) => None,
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
            transitions::lint_skipped_step(transitions, outline, context);
        }
        match self.kinds.remove(0) {
            KindField::Run(run) => {
                let unmixed = self.refuse_default(context);
                let step = self.run_step(&run, transitions, outline, context);
                unmixed?;
                step.map(StepKind::Run)
            }
            KindField::Wait(wait) => {
                let unmixed = self.refuse_run_keys("waits for a signal", context);
                let unmixed = unmixed.and(self.refuse_default(context));
                let step = wait::read(&wait, outline, context);
                if in_graph {
                    transitions::lint_wait_step(transitions, outline, context);
                }
                unmixed?;
                step.map(StepKind::Wait)
            }
            KindField::Parallel(parallel) => {
                let unmixed = self.refuse_run_keys("has branches", context);
                let unmixed = unmixed.and(self.refuse_default(context));
                let unmixed = unmixed.and(self.refuse_set("has branches", context));
                if in_graph {
                    transitions::lint_run_step(transitions, outline, false, context);
                }
                let step = parallel::read(parallel?, context);
                unmixed?;
                step.map(StepKind::Parallel)
            }
            KindField::Set => {
                let unmixed = self.refuse_run_keys("only sets state", context);
                unmixed.and(self.refuse_default(context))?;
                if in_graph {
                    transitions::lint_wait_step(transitions, outline, context);
                }
                Ok(StepKind::Set)
            }
            KindField::Switch(arms) => {
                let unmixed = self.refuse_run_keys("is a switch", context);
                let unmixed = unmixed.and(self.refuse_set("is a switch", context));
                let fields = SwitchFields {
                    arms: &arms,
                    default: self.default.as_ref(),
                };
                let step = switch::read(&fields, outline, context);
                let has_default = self.default.is_some();
                if in_graph {
                    transitions::lint_switch(transitions, outline, has_default, context);
                }
                transitions::lint_transitions_of_switch(transitions, outline, has_default, context);
                unmixed?;
                step.map(StepKind::Switch)
            }
        }
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
