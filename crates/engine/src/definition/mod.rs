//! The intermediate form of a workflow definition: what the log stores and the engine executes.
//!
//! The crate `dsl` parses and validates a text (rules W1–W6) and produces a [`Definition`]; the engine executes it and
//! owns its encoding. Names are resolved to indexes and mappings to [`Template`]s, so `apply` never parses anything.

mod attribute;
mod backoff;
mod block;
mod call;
mod concurrency;
mod drift;
mod expression;
mod lock;
mod output;
mod plan;
mod retry;
mod signature;
mod source;
mod step;
mod step_mapping;
mod template;
mod terminal;

pub use attribute::{AttributeKind, SearchAttribute};
pub use backoff::{Backoff, BackoffKind, PollPolicy};
pub use block::{Block, BlockForm, BlockIndex};
pub use call::{Call, CallRole, Compensation, RunTarget, Timeouts};
pub use concurrency::{ConcurrencyLimit, OnLimit};
pub use expression::{Expression, Variable};
pub use lock::{Lock, LockSource};
pub use output::OutputRules;
pub use plan::{
    Breaker, Cache, CacheKeyPart, ErrorClasses, Executor, ExecutorExtensions, ExecutorIndex,
    Fallback, FallbackCondition, Health, Plan, PlanExtensions, PlanIndex, RateLimit, RateWindow,
    Selection, Tracking,
};
pub use retry::{RetryDelays, RetryPolicy, RunRetry, Setting, StepRetry};
pub use source::{GroupMode, Schedule, Timing, Trigger, TriggerIndex};
pub use step::{
    ApprovalStep, Arm, BlockStep, Branch, EmitStep, EndIndex, ForEachStep, Join, Merge, MergeRule,
    OnFailure, ParallelStep, RunStep, SignalTypeValue, StateWrites, Step, StepExtensions,
    StepIndex, StepKind, SwitchStep, Target, TerminalIndex, TimerStep, Tolerance, Transition,
    WaitStep, note_repeats,
};
pub use step_mapping::StepMapping;
pub use template::{Part, Path, Root, RunFact, Segment, Template};
pub use terminal::{BuiltInTerminal, CustomTerminal, TerminalStatus};

use crate::exercise::{ENGINE_VERSION_EXERCISE, Mark};
use crate::extensions::extensions;
use crate::ids::{
    Namespace, OutcomeName, PlanName, StepName, TerminalName, WorkflowName, WorkflowVersion,
};
use serde::{Deserialize, Serialize};
use std::{iter, slice};

/// A validated workflow definition (the manual's "workflow YAML file"; rules W0–W6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Unique name within the namespace.
    pub name: WorkflowName,
    /// The version label (W5).
    pub version: WorkflowVersion,
    /// Free text for people (W4).
    pub description: Option<String>,
    /// Anything that people or programs keep with the definition, as compact JSON text; nothing here reads it (W91).
    pub metadata: Option<String>,
    /// The namespace that the definition names (W4); a create in another namespace is rejected.
    pub namespace: Option<Namespace>,
    /// Whether starts must carry an idempotency key (W20).
    pub idempotency: Idempotency,
    /// How long ended runs are kept, in milliseconds; `None` is the default of 7 days (W4).
    pub retention_ms: Option<u64>,
    /// How long a run takes at most, in milliseconds; `None` for as long as it needs (W73).
    pub timeout_ms: Option<u64>,
    /// How many steps may be entered in one instance of a scope; `None` is any number (W78).
    pub max_steps: Option<u32>,
    /// The visit to a step, in one instance of a scope, that the run warns of (W78).
    pub loop_warn_after: u32,
    /// How a run that fails is retried as a whole; `None` if it is not (W77).
    pub retry_run: Option<RunRetry>,
    /// The limits of concurrent runs (W84).
    pub concurrency: Vec<ConcurrencyLimit>,
    /// What its runs work on; no two open runs have the same target and input (W85).
    pub target: Option<Template>,
    /// The targets that no run may have while a run of this workflow is open (W85).
    pub locks: Vec<LockSource>,
    /// The JSON Schema of the input as compact JSON text, checked outside `apply` (W4).
    pub input_schema: Option<String>,
    /// What an input is given that lacks it: an object as compact JSON text (W68).
    pub input_defaults: Option<String>,
    /// The state that a run begins with: a mapping of an object, with paths into the input (W66).
    pub state: Option<Template>,
    /// What becomes the output of a run that ends `completed` (W4, W67).
    pub output: Option<OutputRules>,
    /// Settings of run steps that have none.
    pub defaults: StepDefaults,
    /// The block step that is entered when a run is about to end `failed` or `timed_out` (W80). It belongs to the workflow's
    /// own block, and nothing leads to it.
    pub on_error: Option<StepIndex>,
    /// The block step that is entered when a run is about to end `cancelled` (W81), like that of `on_error`.
    pub on_cancel: Option<StepIndex>,
    /// Custom terminals, in document order.
    pub terminals: Vec<CustomTerminal>,
    /// Queryable fields (W22), in document order.
    pub search_attributes: Vec<SearchAttribute>,
    /// The schedule (W40).
    pub schedule: Option<Schedule>,
    /// The stream triggers (W41, W93), in document order.
    pub triggers: Vec<Trigger>,
    /// Inline plans (W30), in document order.
    pub plans: Vec<Plan>,
    /// The outcomes of `flo.End.NAME` (W51).
    pub ends: Vec<OutcomeName>,
    /// The blocks (W50). Invariant: never empty; index 0 is the workflow's own.
    pub blocks: Vec<Block>,
    /// The steps of all blocks. Invariant: never empty; index 0 is the start step (W10).
    pub steps: Vec<Step>,
    /// What later engine versions added.
    pub extensions: DefinitionExtensions,
}

extensions! {
    /// Optional fields of a definition that version 1 does not have.
    DefinitionExtensions {
        /// The exercise's.
        0xFFFF since ENGINE_VERSION_EXERCISE => mark: Mark,
    }
}

impl Definition {
    /// The engine version that it requires: a cluster that has agreed on an older version cannot store it.
    #[must_use]
    pub fn since(&self) -> u32 {
        let steps = self.steps.iter().map(|step| step.extensions.since());
        let plans = self.plans.iter().map(Plan::since);
        let parts = steps.chain(plans);
        parts.fold(self.extensions.since(), u32::max)
    }

    /// The handler of runs that are about to end at `terminal`; `None` without one (W83).
    #[must_use]
    pub fn handler_at(&self, terminal: Target) -> Option<StepIndex> {
        let runs_handler = match terminal {
            Target::Custom(index) => self.terminal(index).runs_handler,
            Target::BuiltIn(_) | Target::Step(_) | Target::End(_) => true,
        };
        let handler = match self.status_at(terminal)? {
            TerminalStatus::Failed | TerminalStatus::TimedOut => self.on_error,
            TerminalStatus::Cancelled => self.on_cancel,
            TerminalStatus::Completed => None,
        };
        handler.filter(|_| runs_handler)
    }

    /// Whether a run that ends at `terminal` undoes what its steps have done (W83).
    #[must_use]
    pub fn compensates_at(&self, terminal: Target) -> bool {
        let own = match terminal {
            Target::Custom(index) => self.terminal(index).compensates,
            Target::BuiltIn(_) | Target::Step(_) | Target::End(_) => None,
        };
        own.unwrap_or_else(|| self.status_at(terminal) != Some(TerminalStatus::Completed))
    }

    /// Whether the step is a handler of the workflow.
    #[must_use]
    pub fn is_handler(&self, step: StepIndex) -> bool {
        [self.on_error, self.on_cancel].contains(&Some(step))
    }

    /// The step of the workflow's own block that is the step at `index`, or contains it.
    #[must_use]
    pub fn outermost(&self, index: StepIndex) -> StepIndex {
        let around = self.blocks_around(self.step(index).block);
        around.last().map_or(index, |(_, opener)| opener)
    }

    /// Whether the step at `index` is in a block that `opener` opens, or below one.
    #[must_use]
    pub fn is_below(&self, index: StepIndex, opener: StepIndex) -> bool {
        let mut around = self.blocks_around(self.step(index).block);
        around.any(|(_, around)| around == opener)
    }

    /// The blocks from `block` upwards, each with the step that opens it, without the workflow's own.
    pub(crate) fn blocks_around(
        &self,
        block: BlockIndex,
    ) -> impl Iterator<Item = (BlockIndex, StepIndex)> {
        let opened = |block| self.block(block).opener.map(|opener| (block, opener));
        iter::successors(opened(block), move |(_, opener)| {
            opened(self.step(*opener).block)
        })
    }

    /// The retry policy of a call of the step at `index`, or of its block, if there is one (W71).
    #[must_use]
    pub fn retry(&self, index: StepIndex, call: CallRole) -> Option<&StepRetry> {
        if call == CallRole::OnCancel {
            return self.step(index).call(call)?.retry.or(None);
        }
        match &self.step(index).kind {
            StepKind::Run(_) => {
                let default = self.defaults_of(call);
                let default = default.and_then(|defaults| defaults.retry.as_ref());
                self.step(index).call(call)?.retry.or(default)
            }
            StepKind::Block(block) => block.retry.as_ref(),
            StepKind::Wait(_)
            | StepKind::Parallel(_)
            | StepKind::ForEach(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => None,
        }
    }

    /// Whether what such a call of the step at `index` has done can be undone (W82).
    #[must_use]
    pub fn is_undoable(&self, index: StepIndex, call: CallRole) -> bool {
        self.step(index).compensation(call).is_some()
    }

    /// How long the parts of a call of the step at `index` may take; no limits for a step without calls (W70).
    #[must_use]
    pub fn timeouts(&self, index: StepIndex, call: CallRole) -> Timeouts {
        let default = self.defaults_of(call);
        let default = default.and_then(|defaults| defaults.timeouts.as_ref());
        let call = self.step(index).call(call);
        let timeouts = call.and_then(|call| call.timeouts.or(default));
        timeouts.copied().unwrap_or_default()
    }

    /// The defaults that apply to such calls: none to fallbacks (W72).
    fn defaults_of(&self, call: CallRole) -> Option<&StepDefaults> {
        match call {
            CallRole::Target => Some(&self.defaults),
            CallRole::Fallback
            | CallRole::Compensation
            | CallRole::FallbackCompensation
            | CallRole::OnCancel => None,
        }
    }

    /// How long a call of the step at `index`, or the blocks that it opens, may take in all, in milliseconds (W70).
    #[must_use]
    pub fn total_ms(&self, index: StepIndex, call: CallRole) -> Option<u64> {
        if call == CallRole::OnCancel {
            return self.timeouts(index, call).total_ms;
        }
        match &self.step(index).kind {
            StepKind::Run(_) => self.timeouts(index, call).total_ms,
            StepKind::Parallel(parallel) => parallel.timeout_ms,
            StepKind::Block(block) => block.timeout_ms,
            StepKind::ForEach(step) => step.timeout_ms,
            StepKind::Wait(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => None,
        }
    }

    /// All mappings of the definition.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let of_kinds = self.steps.iter().flat_map(|step| match &step.kind {
            StepKind::Run(run) => {
                let output = run.output.as_ref();
                let fallback = run.fallback.as_ref();
                [
                    run.call.input.as_ref(),
                    output.and_then(|output| output.extract.as_ref()),
                    fallback.and_then(|fallback| fallback.input.as_ref()),
                    step.call(CallRole::Compensation)
                        .and_then(|call| call.input.as_ref()),
                    step.call(CallRole::FallbackCompensation)
                        .and_then(|call| call.input.as_ref()),
                ]
            }
            StepKind::Emit(emit) => [emit.key.as_ref(), Some(&emit.payload), None, None, None],
            StepKind::Timer(TimerStep::Until(until)) => [Some(until), None, None, None, None],
            StepKind::ForEach(step) => [Some(&step.items), None, None, None, None],
            StepKind::Approval(step) => [Some(&step.approvers), None, None, None, None],
            StepKind::Wait(wait) => match &wait.signal_type {
                SignalTypeValue::Computed(template) => [Some(template), None, None, None, None],
                SignalTypeValue::Fixed(_) => [None; 5],
            },
            StepKind::Parallel(_)
            | StepKind::Block(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Timer(TimerStep::Duration { .. }) => [None; 5],
        });
        let blocks = self.blocks.iter();
        let of_blocks = blocks.filter_map(|block| block.output.as_ref());
        let terminals = self.terminals.iter();
        let outputs = terminals.filter_map(|terminal| terminal.output.as_ref());
        let sets = self.steps.iter().flat_map(|step| &step.set);
        let sets = sets.map(|writes| &writes.object);
        let on_cancels = self.steps.iter().flat_map(|step| &step.on_cancel);
        let on_cancels = on_cancels.filter_map(|call| call.input.as_ref());
        let keys = self.concurrency.iter().map(|limit| &limit.key);
        let locks = self.locks.iter().filter_map(|lock| match lock {
            LockSource::Computed(template) => Some(template),
            LockSource::Literal(_) => None,
        });
        let before_start = keys.chain(&self.target).chain(locks);
        let of_output = self
            .output
            .as_ref()
            .and_then(|output| output.extract.as_ref());
        let of_run = of_output.into_iter().chain(&self.state).chain(before_start);
        of_run
            .chain(sets)
            .chain(on_cancels)
            .chain(outputs)
            .chain(of_blocks)
            .chain(of_kinds.flatten())
    }

    /// The step at `index`.
    ///
    /// # Panics
    /// When the index is not of this definition: a bug, since indexes are made with it.
    #[must_use]
    pub fn step(&self, index: StepIndex) -> &Step {
        &self.steps[index.position()]
    }

    /// The step with this name; names are unique in a definition.
    #[must_use]
    pub fn step_named(&self, name: &StepName) -> Option<StepIndex> {
        let mut steps = (0..).map(StepIndex).zip(&self.steps);
        steps
            .find(|(_, step)| step.name == *name)
            .map(|(index, _)| index)
    }

    /// The block at `index`.
    ///
    /// # Panics
    /// When the index is not of this definition: a bug, since indexes are made with it.
    #[must_use]
    pub fn block(&self, index: BlockIndex) -> &Block {
        &self.blocks[index.position()]
    }

    /// The plan at `index`.
    ///
    /// # Panics
    /// When the index is not of this definition: a bug, since indexes are made with it.
    #[must_use]
    pub fn plan(&self, index: PlanIndex) -> &Plan {
        &self.plans[index.position()]
    }

    /// The blocks that the step at `index` opens; empty for a step that opens none.
    #[must_use]
    pub fn branches(&self, index: StepIndex) -> &[Branch] {
        match &self.step(index).kind {
            StepKind::Parallel(parallel) => &parallel.branches,
            StepKind::Block(block) => slice::from_ref(&block.body),
            StepKind::ForEach(step) => slice::from_ref(&step.body),
            StepKind::Run(_)
            | StepKind::Wait(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => &[],
        }
    }

    /// The position of the branch that is `block` among those of the step at `opener`.
    ///
    /// # Panics
    /// When that step does not open the block: a bug, since each block names its opener.
    pub(crate) fn branch_position(&self, opener: StepIndex, block: BlockIndex) -> usize {
        let mut branches = self.branches(opener).iter();
        let position = branches.position(|branch| branch.block == block);
        position.expect("a block is a branch of the step that opens it")
    }

    /// The trigger at `index`; `None` if the definition has fewer.
    #[must_use]
    pub fn trigger(&self, index: TriggerIndex) -> Option<&Trigger> {
        self.triggers.get(index.position())
    }

    /// The plan called `name`.
    #[must_use]
    pub fn plan_named(&self, name: &PlanName) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.name == *name)
    }

    /// The custom terminal at `index`.
    ///
    /// # Panics
    /// When the index is not of this definition: a bug, since indexes are made with it.
    #[must_use]
    pub fn terminal(&self, index: TerminalIndex) -> &CustomTerminal {
        &self.terminals[index.position()]
    }

    /// The custom terminal with this name.
    #[must_use]
    pub fn terminal_named(&self, name: &TerminalName) -> Option<TerminalIndex> {
        let mut terminals = (0..).map(TerminalIndex).zip(&self.terminals);
        let found = terminals.find(|(_, terminal)| terminal.name == *name);
        found.map(|(index, _)| index)
    }

    /// The name of `target` in the definition's text.
    #[must_use]
    pub fn target_name(&self, target: Target) -> String {
        match target {
            Target::Step(step) => self.step(step).name.to_string(),
            Target::BuiltIn(terminal) => terminal.name().to_owned(),
            Target::Custom(index) => self.terminal(index).name.to_string(),
            Target::End(index) => format!("flo.End.{}", self.ends[index.position()]),
        }
    }

    /// What a call invokes, as the definition's text names it.
    #[must_use]
    pub fn target_text(&self, target: &RunTarget) -> String {
        match target {
            RunTarget::Action(name) => format!("@actions/{name}"),
            RunTarget::Plan(index) => format!("@plan/{}", self.plan(*index).name),
            RunTarget::Workflow { name, version } => match version {
                Some(version) => format!("@workflow/{name}:{version}"),
                None => format!("@workflow/{name}"),
            },
        }
    }

    /// How a run ends at `target`; `None` when it is a step.
    #[must_use]
    pub fn status_at(&self, target: Target) -> Option<TerminalStatus> {
        match target {
            Target::Step(_) | Target::End(_) => None,
            Target::BuiltIn(terminal) => Some(terminal.status()),
            Target::Custom(index) => Some(self.terminal(index).status),
        }
    }
}

/// Settings that hold for run steps that have none (W71).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDefaults {
    /// The retry policy.
    pub retry: Option<StepRetry>,
    /// How long they may take.
    pub timeouts: Option<Timeouts>,
}

/// Whether starts carry an idempotency key (the manual's `idempotency`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Idempotency {
    /// Callers are not expected to send a key; one that is sent is honored (W20).
    #[default]
    None,
    /// A key may be sent.
    Optional,
    /// A start without a key is refused.
    Required,
}
