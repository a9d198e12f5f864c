//! Steps, transitions and terminals.

use super::{
    BlockIndex, BuiltInTerminal, Call, CallRole, Compensation, Expression, OutputRules, PollPolicy,
    RunTarget, StepRetry, Template, Tracking,
};
use crate::extensions::extensions;
use crate::ids::{OutcomeName, SignalType, StateKey, StepName, StreamName};
use serde::{Deserialize, Serialize};

/// Makes a newtype over the position of an element in one of a definition's lists.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name(pub u16);

        impl $name {
            /// The position in its list.
            #[must_use]
            pub fn position(self) -> usize {
                usize::from(self.0)
            }
        }
    };
}
pub(super) use index;

index! {
    /// The position of a step in [`super::Definition::steps`]; 0 is the start step.
    StepIndex
}
index! {
    /// The position of a name in [`super::Definition::ends`].
    EndIndex
}
index! {
    /// The position of a custom terminal in [`super::Definition::terminals`].
    TerminalIndex
}

impl StepIndex {
    /// The start step.
    pub const START: Self = Self(0);
}

/// The smallest unit of work (the manual's "step").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step's name, unique in the definition; `start` for the start step of a graph.
    pub name: StepName,
    /// The block that it belongs to.
    pub block: BlockIndex,
    /// The step after it in a list; `None` for the last one, and in other blocks (W50a).
    pub next: Option<StepIndex>,
    /// Whether it may be entered more than once in one instance of its block ([`note_repeats`]).
    pub may_repeat: bool,
    /// Whether the step is skipped, evaluated when it is entered (W65).
    pub skip_if: Option<Expression>,
    /// What it writes to the state when it has ended (W63).
    pub set: Option<StateWrites>,
    /// The call that is made when it was cancelled: only of steps that wait for something other than blocks (W81).
    pub on_cancel: Option<Box<Call>>,
    /// What the step does.
    pub kind: StepKind,
    /// Where each outcome leads, in document order; outcomes are unique.
    pub transitions: Vec<Transition>,
    /// What later engine versions added.
    pub extensions: StepExtensions,
}

extensions! {
    /// Optional fields of a step that version 1 does not have.
    StepExtensions {}
}

impl Step {
    /// The target that it executes, if it is a run step.
    #[must_use]
    pub fn run(&self) -> Option<&RunStep> {
        match &self.kind {
            StepKind::Run(run) => Some(run),
            StepKind::Wait(_)
            | StepKind::Parallel(_)
            | StepKind::Block(_)
            | StepKind::ForEach(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => None,
        }
    }

    /// One of its calls, if it has it.
    #[must_use]
    pub fn call(&self, kind: CallRole) -> Option<&Call> {
        if kind == CallRole::OnCancel {
            return self.on_cancel.as_deref();
        }
        let run = self.run()?;
        match kind {
            CallRole::OnCancel => None,
            CallRole::Target => Some(&run.call),
            CallRole::Fallback => run.fallback.as_ref(),
            CallRole::Compensation => run.compensation.as_ref().map(|undo| &undo.call),
            CallRole::FallbackCompensation => {
                let undo = run.fallback_compensation.as_ref();
                undo.map(|undo| &undo.call)
            }
        }
    }

    /// How what a call of the step has done is undone, and the role of the call that does it (W82).
    #[must_use]
    pub fn compensation(&self, call: CallRole) -> Option<(CallRole, &Compensation)> {
        let run = self.run()?;
        let own = run.compensation.as_ref();
        let own = own.map(|undo| (CallRole::Compensation, undo));
        match call {
            CallRole::Target => own,
            CallRole::Fallback => {
                let of_fallback = run.fallback_compensation.as_ref();
                let of_fallback = of_fallback.map(|undo| (CallRole::FallbackCompensation, undo));
                of_fallback.or(own)
            }
            CallRole::Compensation | CallRole::FallbackCompensation | CallRole::OnCancel => None,
        }
    }

    /// The policy by which the outcome `pending` of a call is polled (W14).
    #[must_use]
    pub fn poll(&self, call: CallRole) -> Option<&PollPolicy> {
        match call {
            CallRole::Target => self.run()?.poll.as_ref(),
            CallRole::Fallback
            | CallRole::Compensation
            | CallRole::FallbackCompensation
            | CallRole::OnCancel => None,
        }
    }

    /// Whether its cancellation does not wait until its target has ended (W54).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.run().is_some_and(|run| run.is_abandoned)
    }

    /// Whether what was done in its blocks is undone when it ends badly (W82a).
    #[must_use]
    pub fn undoes_blocks(&self) -> bool {
        match &self.kind {
            StepKind::Parallel(step) => step.compensates,
            StepKind::Block(step) => step.compensates,
            StepKind::ForEach(step) => step.compensates,
            StepKind::Run(_)
            | StepKind::Wait(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => false,
        }
    }

    /// Whether it opens blocks or calls a child: a resume continues what these have begun (W89).
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        match &self.kind {
            StepKind::Parallel(_) | StepKind::Block(_) | StepKind::ForEach(_) => true,
            StepKind::Run(run) => matches!(run.call.target, RunTarget::Workflow { .. }),
            StepKind::Wait(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => false,
        }
    }

    /// What becomes of the output of its target (W67).
    #[must_use]
    pub fn output(&self) -> Option<&OutputRules> {
        self.run()?.output.as_ref()
    }

    /// Whether its output can become that of its block: a switch only leads on (W52).
    #[must_use]
    pub fn has_output(&self) -> bool {
        match &self.kind {
            StepKind::Run(_)
            | StepKind::Wait(_)
            | StepKind::Parallel(_)
            | StepKind::Block(_)
            | StepKind::ForEach(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_)
            | StepKind::Approval(_) => true,
            StepKind::Switch(_) => false,
        }
    }
}

/// The kinds of step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// Executes a target.
    Run(Box<RunStep>),
    /// Waits for a signal.
    Wait(WaitStep),
    /// Executes blocks concurrently.
    Parallel(ParallelStep),
    /// Executes a block in a separate scope.
    Block(BlockStep),
    /// Executes a block for each element of an array.
    ForEach(ForEachStep),
    /// Leads where conditions say.
    Switch(SwitchStep),
    /// Only writes to the state (W63).
    Set,
    /// Appends a record to a stream.
    Emit(EmitStep),
    /// Waits for a time.
    Timer(TimerStep),
    /// Asks people for a decision.
    Approval(ApprovalStep),
}

impl StepKind {
    /// The published name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Wait(_) => "wait_for_signal",
            Self::Parallel(_) => "parallel",
            Self::Block(_) => "block",
            Self::ForEach(_) => "for_each",
            Self::Switch(_) => "switch",
            Self::Set => "set",
            Self::Emit(_) => "emit",
            Self::Timer(_) => "wait",
            Self::Approval(_) => "approval",
        }
    }
}

/// A step that asks people for a decision (W61).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalStep {
    /// Who may decide: a value that must be an array of [`Approver`](crate::ids::Approver)s, empty for everyone.
    pub approvers: Template,
    /// How many must approve, from 1; one rejection is enough.
    pub quorum: u16,
    /// How long to wait, in milliseconds; `None` waits for ever.
    pub timeout_ms: Option<u64>,
}

/// A step that waits for a time (W59).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerStep {
    /// For a length of time.
    Duration {
        /// In milliseconds.
        ms: u64,
    },
    /// Until a time: a text in RFC 3339, or whole milliseconds since the Unix epoch. One that is past ends the step
    /// immediately.
    Until(Template),
}

/// A step that appends a record to a stream of the run's namespace (W62).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmitStep {
    /// The stream.
    pub stream: StreamName,
    /// The partition key: a text, or null for none.
    pub key: Option<Template>,
    /// The payload.
    pub payload: Template,
}

/// What a step writes to the state (W63).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateWrites {
    /// The keys, in document order; each is unique.
    pub keys: Vec<StateKey>,
    /// An object with these keys.
    pub object: Template,
}

/// A step that leads where conditions say (W60).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchStep {
    /// At least one, in the order in which they are evaluated.
    pub arms: Vec<Arm>,
    /// Where it leads if no condition is true; `None` is the outcome `no_match`.
    pub default: Option<Target>,
}

/// A condition of a [`SwitchStep`], and where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// The condition.
    pub when: Expression,
    /// Where it leads if the condition is true.
    pub target: Target,
}

/// A step that executes blocks concurrently (W56).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelStep {
    /// At least one, in document order.
    pub branches: Vec<Branch>,
    /// What decides how the step ends.
    pub join: Join,
    /// What a failure that decides it does to the other branches.
    pub on_failure: OnFailure,
    /// What becomes of keys of the state that its branches write, in document order; each key is unique. Of another key
    /// the last value counts.
    pub merge: Vec<MergeRule>,
    /// How long the step may take, in milliseconds; `None` is for ever (W70).
    pub timeout_ms: Option<u64>,
    /// Whether what was done in its blocks is undone when it ends badly (W82a).
    pub compensates: bool,
}

/// What becomes of a key of the state that branches write (W58).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRule {
    /// The key.
    pub key: StateKey,
    /// How its values become one.
    pub merge: Merge,
}

/// How the value that stands in the state and those that branches have written become one (W58).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Merge {
    /// The sum of numbers.
    Sum,
    /// The elements of all arrays, and the values that are not arrays, as one array.
    Append,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The first value.
    First,
}

impl Merge {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Append, Self::Min, Self::Max, Self::First];

    /// What a definition calls it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Append => "append",
            Self::Min => "min",
            Self::Max => "max",
            Self::First => "first",
        }
    }
}

/// What decides how a step with branches ends (W56).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Join {
    /// The end of all branches.
    #[default]
    All,
    /// The first branch that succeeds.
    Any,
    /// The first branch that ends.
    First,
    /// That many branches that succeed. Invariant: from 1 to the number of branches (E516).
    Count(u16),
}

/// What a failure does to the branches that are still open (W56).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// They run to their end.
    #[default]
    Settle,
    /// They are cancelled.
    Cancel,
}

/// A block that a step opens, such as a branch of a [`ParallelStep`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its name, unique in the definition.
    pub name: StepName,
    /// What it executes.
    pub block: BlockIndex,
}

/// A step that executes a block in a separate scope (W69).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStep {
    /// The block. Its first step has this name unless it has another one.
    pub body: Branch,
    /// The retry policy; without it, the block is executed once.
    pub retry: Option<StepRetry>,
    /// How long the step may take, in milliseconds; `None` is for ever (W70).
    pub timeout_ms: Option<u64>,
    /// Whether what was done in its blocks is undone when it ends badly (W82a).
    pub compensates: bool,
}

/// A step that executes a block for each element of an array (W57).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEachStep {
    /// The array.
    pub items: Template,
    /// The block. Its first step has this name unless it has another one.
    pub body: Branch,
    /// The maximum number of iterations that run at the same time, from 1. With 1, each sees what the previous ones wrote.
    pub concurrency: u16,
    /// What happens to the other iterations once more have failed than are tolerated.
    pub on_failure: OnFailure,
    /// How many iterations may fail.
    pub tolerate: Tolerance,
    /// Whether the output of the step is the array of the outputs; otherwise, the output has only counts.
    pub collects_outputs: bool,
    /// What becomes of keys of the state that the iterations write, in document order; each key is unique. Of another
    /// key the last value counts.
    pub merge: Vec<MergeRule>,
    /// How long the step may take, in milliseconds; `None` is for ever (W70).
    pub timeout_ms: Option<u64>,
    /// Whether what was done in its blocks is undone when it ends badly (W82a).
    pub compensates: bool,
}

/// How many iterations of a step may fail (W57).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tolerance {
    /// That many.
    Count(u32),
    /// That percentage of them, rounded down.
    Percent(u8),
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::Count(0)
    }
}

impl Tolerance {
    /// How many of `total` may fail.
    #[must_use]
    pub fn of(self, total: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let part = u64::from(total) * u64::from(percent) / 100;
                u32::try_from(part).unwrap_or(total)
            }
        }
    }
}

/// A step that executes a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStep {
    /// The call of its target.
    pub call: Call,
    /// The poll policy for the outcome `pending` (W14).
    pub poll: Option<PollPolicy>,
    /// What becomes of the output of the target; without it, that is the step's (W67).
    pub output: Option<OutputRules>,
    /// The call that is made when the target has failed for good (W72).
    pub fallback: Option<Call>,
    /// Whether a cancellation does not wait until the target has ended (W54).
    pub is_abandoned: bool,
    /// How the outcome of the target is reported, if that is an action (W75).
    pub tracking: Tracking,
    /// How what the target has done is undone, and what the fallback has done without its own compensation (W82).
    pub compensation: Option<Compensation>,
    /// How what the fallback has done is undone.
    pub fallback_compensation: Option<Compensation>,
}

/// A step that waits for a signal (W19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitStep {
    /// The signal type to match.
    pub signal_type: SignalTypeValue,
    /// How long to wait, in milliseconds; `None` waits for ever.
    pub timeout_ms: Option<u64>,
    /// Where expiry leads.
    pub on_timeout: Option<Target>,
}

/// The type of the signal that a step waits for (W61a).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalTypeValue {
    /// Always this one.
    Fixed(SignalType),
    /// A value, which must be a text: it is computed when the step is entered.
    Computed(Template),
}

/// One line of a step's `transitions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// The outcome that is matched exactly (W11).
    pub outcome: OutcomeName,
    /// Where it leads.
    pub target: Target,
}

/// Where a transition leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// To another step, or the same one again.
    Step(StepIndex),
    /// To one of the four built-in terminals; in a nested block, to the end of the block (W51).
    BuiltIn(BuiltInTerminal),
    /// To a custom terminal: the end of the run, from any block.
    Custom(TerminalIndex),
    /// To the end of a nested block, with an outcome of the definition's own (`flo.End.NAME`).
    End(EndIndex),
}

/// Notes which steps may be entered more than once in one instance of their block: those behind a transition to the
/// same step or to one before it. Every cycle has such a transition.
pub fn note_repeats(steps: &mut [Step]) {
    let edges: Vec<Vec<usize>> = steps.iter().map(edges).collect();
    let mut open: Vec<usize> = Vec::new();
    for (from, targets) in edges.iter().enumerate() {
        open.extend(targets.iter().filter(|to| **to <= from));
    }
    while let Some(step) = open.pop() {
        if !std::mem::replace(&mut steps[step].may_repeat, true) {
            open.extend(&edges[step]);
        }
    }
}

/// The steps to which a step may lead within its block.
fn edges(step: &Step) -> Vec<usize> {
    let of_kind: Vec<Target> = match &step.kind {
        StepKind::Wait(wait) => wait.on_timeout.into_iter().collect(),
        StepKind::Switch(switch) => {
            let arms = switch.arms.iter().map(|arm| arm.target);
            arms.chain(switch.default).collect()
        }
        StepKind::Run(_)
        | StepKind::Parallel(_)
        | StepKind::Block(_)
        | StepKind::ForEach(_)
        | StepKind::Set
        | StepKind::Emit(_)
        | StepKind::Timer(_)
        | StepKind::Approval(_) => Vec::new(),
    };
    let transitions = step.transitions.iter().map(|line| line.target);
    let next = step.next.map(Target::Step);
    let targets = transitions.chain(of_kind).chain(next);
    let step_of = |target| match target {
        Target::Step(step) => Some(step.position()),
        Target::BuiltIn(_) | Target::Custom(_) | Target::End(_) => None,
    };
    targets.filter_map(step_of).collect()
}
