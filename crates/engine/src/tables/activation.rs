//! Activations: the open visits of runs to steps, and the results of ended visits.

use super::{
    DefinitionNumber, PayloadRef, PlanState, PlanWait, TargetResult, UndoOwner, Undoing, Undone,
    tables,
};
use crate::definition::{CallRole, Definition, StepIndex};
use crate::ids::{ActionRunNumber, Approver, OutcomeName, RunNumber, ScopeNumber, SignalType};
use crate::mostly_default::{ConstDefault, MostlyDefault};
use serde::{Deserialize, Serialize};

tables! {
    /// By run and number. Live while the step is active.
    62 Activations((RunNumber, u64)) -> Activation, HOT;
    /// By run, scope and step: the result of the last visit to the step. Live as long as the run, unless the step that
    /// opened the scope is entered again.
    63 StepResults((RunNumber, ScopeNumber, StepIndex)) -> StepResult;
}

/// An open visit to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Unique within the run.
    pub number: u64,
    /// The scope that it belongs to.
    pub scope: ScopeNumber,
    /// The step.
    pub step: StepIndex,
    /// The visit to the step in this scope, from 1.
    pub visit: u32,
    /// Which call of the step it makes.
    pub call: CallRole,
    /// The attempt at this call, from 1; the action's own attempts are not counted (W13).
    pub attempt: u32,
    /// Attempts at the calls before this one.
    pub earlier_attempts_count: u32,
    /// Polls since the last attempt began (W14).
    pub polls_count: u32,
    /// When the step was entered, in milliseconds.
    pub started_at_ms: u64,
    /// When the first attempt at this call began: `within_ms` counts from here (W12). In milliseconds.
    pub call_started_at_ms: u64,
    /// When it takes too long (W70).
    pub timeouts: MostlyDefault<ActivationTimeouts>,
    /// How many compensations the run had entered before this visit (W82a).
    pub compensations_before: u64,
    /// Whether its call was made, can be undone, and the end of the attempt has not been noted yet (W82).
    pub is_call_open: bool,
    /// What it undoes, if it makes a compensation.
    pub undone: Option<Box<Undone>>,
    /// How it ends, while something has to end before it.
    pub ending: MostlyDefault<ActivationEnding>,
    /// The mapped input.
    pub input: PayloadRef,
    /// What it waits for.
    pub state: ActivationState,
}

/// When an activation takes too long (W70).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationTimeouts {
    /// The deadline of the call, or of a step that opens blocks, in milliseconds; `None` without a total timeout.
    pub total_ends_at_ms: Option<u64>,
    /// The deadline of the attempt, in milliseconds; `None` without an attempt timeout, or until its time counts. While its
    /// child waits for concurrency keys, the deadline of that wait.
    pub attempt_ends_at_ms: Option<u64>,
    /// Present while its child waits for concurrency keys (W84).
    pub queued_child: Option<QueuedChild>,
}

impl ConstDefault for ActivationTimeouts {
    const DEFAULT: &'static Self = &Self {
        total_ends_at_ms: None,
        attempt_ends_at_ms: None,
        queued_child: None,
    };
}

/// How an activation ends, while something has to end before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationEnding {
    /// How it has ended, while what was done in its blocks is undone first (W82a).
    pub undoing: Option<Undoing>,
    /// The cancelled scope that ends only after this step; [`ScopeNumber::ROOT`] is the run (W54).
    pub cancelled_with: Option<ScopeNumber>,
    /// The result of an attempt that took too long, while what it waits for has not ended yet (W54, W70).
    pub timeout_result: Option<TargetResult>,
}

impl ConstDefault for ActivationEnding {
    const DEFAULT: &'static Self = &Self {
        undoing: None,
        cancelled_with: None,
        timeout_result: None,
    };
}

/// A child that waits for its concurrency keys: the time of the attempt stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedChild {
    /// The rest of the attempt timeout, in milliseconds; `None` without one.
    pub attempt_left_ms: Option<u64>,
}

impl Activation {
    /// Notes that its call was made: it is open if what it has done can be undone (W82).
    pub(crate) fn open_call(&mut self, definition: &Definition) {
        self.is_call_open = definition.is_undoable(self.step, self.call);
    }

    /// Whether it was cancelled or took too long, and waits only until its worker or child has ended (W54).
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        let is_cancelled = self.ending.cancelled_with.is_some() && !self.call.is_on_cancel();
        is_cancelled || self.ending.timeout_result.is_some()
    }

    /// For what it undoes something, if it makes a compensation.
    #[must_use]
    pub fn undoes_for(&self) -> Option<UndoOwner> {
        self.undone.as_ref().map(|undone| undone.owner)
    }

    /// The attempt, counted over all calls of the visit, from 1.
    #[must_use]
    pub fn attempts_count(&self) -> u32 {
        self.earlier_attempts_count + self.attempt
    }
}

/// What an active step waits for (W21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActivationState {
    /// Nothing: it is executed in this turn.
    Executing,
    /// An action run.
    Action(ActionRunNumber),
    /// A signal.
    Signal(SignalWait),
    /// A child run.
    Child(RunNumber),
    /// The verdict on a child's input (W4).
    ChildInput {
        /// The child's definition.
        definition: DefinitionNumber,
    },
    /// The next attempt, at a given time.
    Retry {
        /// When the attempt is made, in milliseconds.
        due_ms: u64,
    },
    /// The next poll, at a given time.
    Poll {
        /// When the poll is made, in milliseconds.
        due_ms: u64,
    },
    /// The execution of a plan.
    Plan(Box<PlanState>),
    /// The ends of its branches.
    Branches(Branches),
    /// The ends of its iterations.
    Iterations(Iterations),
    /// The verdict on its output (W67).
    OutputCheck(Box<UncheckedOutput>),
    /// A decision.
    Approval(OpenApproval),
    /// A time (W59).
    Timer {
        /// In milliseconds.
        due_ms: u64,
    },
    /// The time at which the step is entered (W74).
    Delay {
        /// In milliseconds.
        due_ms: u64,
    },
}

/// A wait for a signal (W19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalWait {
    /// Its type.
    pub signal_type: SignalType,
    /// When the wait expires, in milliseconds; `None` if it does not.
    pub deadline_at_ms: Option<u64>,
}

/// A wait for a decision (W61).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenApproval {
    /// How many have approved.
    pub approvals_count: u16,
    /// When the wait expires, in milliseconds; `None` if it does not.
    pub deadline_at_ms: Option<u64>,
    /// Who may decide; empty for everyone.
    pub approvers: Vec<Approver>,
}

/// The output of a step, before it is checked against its schema (W67).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncheckedOutput {
    /// The outcome that the step's target gave.
    pub outcome: OutcomeName,
    /// The output of the target.
    pub result: Option<PayloadRef>,
    /// What the step makes of it.
    pub output: Option<PayloadRef>,
    /// The earliest time of what follows, in milliseconds, if the target gave one (W74).
    pub not_before_ms: Option<u64>,
    /// The patch of the state, if the worker gave one (W66).
    pub state_patch: Option<Box<PayloadRef>>,
}

impl UncheckedOutput {
    /// The payloads that it names.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = PayloadRef> + use<> {
        let patch = self.state_patch.as_deref().copied();
        [self.result, self.output, patch].into_iter().flatten()
    }
}

/// The branches of an active step (W56).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branches {
    /// The scope of the first one; the others have the numbers after it.
    pub first_scope: ScopeNumber,
    /// How many have begun.
    pub begun_count: u32,
    /// How many of these have ended or were cancelled.
    pub ended_count: u32,
    /// How many have ended with a good outcome, those that were skipped included.
    pub good_count: u32,
    /// Which have ended with a good outcome: the bit at the position of each.
    pub good: u64,
    /// How many were skipped.
    pub skipped_count: u32,
    /// How the step will end, once no branch is open.
    pub decision: Option<JoinDecision>,
    /// Whether one of them has waited for something from outside.
    pub has_waited: bool,
    /// The largest number of steps that one of them took since it last waited.
    pub steps_since_wait: u32,
}

/// The iterations of an active step (W57).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iterations {
    /// The scope of the first one; the others have the numbers after it.
    pub first_scope: ScopeNumber,
    /// Whether it collects the outputs. What the step says when it is entered stays, also if the revision changes.
    pub collects_outputs: bool,
    /// Whether each iteration begins with the state that the one before it has left. It stays, too.
    pub is_sequential: bool,
    /// How many items there are.
    pub total_count: u32,
    /// How many have begun.
    pub begun_count: u32,
    /// How many of these have ended or were cancelled.
    pub ended_count: u32,
    /// How many have ended with a good outcome.
    pub good_count: u32,
    /// How many have failed.
    pub failed_count: u32,
    /// The size of the collected outputs as array elements, in bytes.
    pub collected_bytes: u32,
    /// Whether the outputs are too large to be collected.
    pub is_too_large: bool,
    /// After a resume: how many that have begun did not succeed and have not continued yet (W89).
    pub resumable_count: u32,
    /// After a resume: the iterations before this index have succeeded or continued (W89).
    pub next_resumable: u32,
    /// Whether work that begins the next one is queued.
    pub is_begin_queued: bool,
    /// Whether no further one may begin, because too many have failed or the step has taken too long.
    pub is_stopped: bool,
    /// Whether the step has taken too long (W70).
    pub is_timed_out: bool,
    /// Whether one of them has waited for something from outside.
    pub has_waited: bool,
    /// The largest number of steps that one of them took since it last waited.
    pub steps_since_wait: u32,
}

impl Iterations {
    /// The scope of the iteration with this index.
    #[must_use]
    pub fn scope(&self, index: u32) -> ScopeNumber {
        ScopeNumber(self.first_scope.0 + u64::from(index))
    }

    /// Whether every iteration that will ever begin or continue has ended.
    #[must_use]
    pub fn have_all_ended(&self) -> bool {
        let are_all_begun = self.begun_count == self.total_count && self.resumable_count == 0;
        (are_all_begun || self.is_stopped) && self.open_count() == 0
    }

    /// Whether the iteration with this index continues after a resume, if it has begun and did not succeed.
    #[must_use]
    pub fn may_continue(&self, index: u32) -> bool {
        self.resumable_count > 0 && index >= self.next_resumable
    }

    /// How many have begun and have not ended, those excluded that have stopped and have not continued yet.
    #[must_use]
    pub fn open_count(&self) -> u32 {
        self.begun_count - self.ended_count - self.resumable_count
    }
}

/// How a step with branches ends (W56).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinDecision {
    /// With `success`.
    Success,
    /// With `failure`.
    Failure,
    /// With the outcome of the branch at this position.
    First(u32),
    /// With `timeout`: the step has taken too long (W70).
    TimedOut,
}

impl Branches {
    /// The scope of the branch at `position`.
    #[must_use]
    pub fn scope(&self, position: u32) -> ScopeNumber {
        ScopeNumber(self.first_scope.0 + u64::from(position))
    }
}

/// What an activation waits for. A result from any other source is too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaited {
    /// Nothing external: the current turn finishes it.
    Nothing,
    /// An action run, of the step or of its plan.
    Action(ActionRunNumber),
    /// A child run.
    Child(RunNumber),
    /// A signal.
    Signal,
    /// A decision.
    Approval,
    /// The result of validating a child's input, or the step's output.
    Verdict,
    /// A time.
    Time,
    /// The ends of its branches or iterations.
    Branches,
}

impl ActivationState {
    /// What the activation waits for.
    #[must_use]
    pub fn awaits(&self) -> Awaited {
        match self {
            Self::Executing => Awaited::Nothing,
            Self::Action(number) => Awaited::Action(*number),
            Self::Plan(plan) => match plan.wait {
                PlanWait::Executing => Awaited::Nothing,
                PlanWait::Action(number) => Awaited::Action(number),
                PlanWait::Retry { .. } => Awaited::Time,
            },
            Self::Signal(_) => Awaited::Signal,
            Self::Approval(_) => Awaited::Approval,
            Self::Child(number) => Awaited::Child(*number),
            Self::ChildInput { .. } | Self::OutputCheck(_) => Awaited::Verdict,
            Self::Retry { .. } | Self::Poll { .. } | Self::Timer { .. } | Self::Delay { .. } => {
                Awaited::Time
            }
            Self::Branches(_) | Self::Iterations(_) => Awaited::Branches,
        }
    }

    /// When its timer is due, in milliseconds; `None` without a timer.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        match self {
            Self::Retry { due_ms }
            | Self::Poll { due_ms }
            | Self::Timer { due_ms }
            | Self::Delay { due_ms } => Some(*due_ms),
            Self::Signal(wait) => wait.deadline_at_ms,
            Self::Approval(approval) => approval.deadline_at_ms,
            Self::Plan(plan) => match plan.wait {
                PlanWait::Retry { due_ms } => Some(due_ms),
                PlanWait::Executing | PlanWait::Action(_) => None,
            },
            Self::Executing
            | Self::Action(_)
            | Self::Child(_)
            | Self::ChildInput { .. }
            | Self::OutputCheck(_)
            | Self::Branches(_)
            | Self::Iterations(_) => None,
        }
    }

    /// The execution of a plan, if it is one.
    #[must_use]
    pub fn plan(&self) -> Option<&PlanState> {
        match self {
            Self::Plan(plan) => Some(plan),
            Self::Executing
            | Self::Action(_)
            | Self::Signal(_)
            | Self::Approval(_)
            | Self::Child(_)
            | Self::ChildInput { .. }
            | Self::OutputCheck(_)
            | Self::Retry { .. }
            | Self::Poll { .. }
            | Self::Timer { .. }
            | Self::Delay { .. }
            | Self::Branches(_)
            | Self::Iterations(_) => None,
        }
    }

    /// The branches of the step, while it waits for them.
    #[must_use]
    pub fn branches(&self) -> Option<&Branches> {
        match self {
            Self::Branches(branches) => Some(branches),
            Self::Executing
            | Self::Action(_)
            | Self::Signal(_)
            | Self::Approval(_)
            | Self::Child(_)
            | Self::ChildInput { .. }
            | Self::OutputCheck(_)
            | Self::Retry { .. }
            | Self::Poll { .. }
            | Self::Timer { .. }
            | Self::Delay { .. }
            | Self::Iterations(_)
            | Self::Plan(_) => None,
        }
    }

    /// Whether it is decided how the step ends, although scopes that it has opened have not ended.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        match self {
            Self::Branches(branches) => branches.decision.is_some(),
            Self::Iterations(iterations) => iterations.is_stopped,
            _ => false,
        }
    }

    /// Whether the step has opened scopes.
    #[must_use]
    pub fn opens_scopes(&self) -> bool {
        self.awaits() == Awaited::Branches
    }

    /// Whether the step executes, now or in a later entry, and waits for nothing.
    #[must_use]
    pub fn is_executing(&self) -> bool {
        self.awaits() == Awaited::Nothing
    }

    /// The action run that it waits for, including that of a plan.
    #[must_use]
    pub fn action_run(&self) -> Option<ActionRunNumber> {
        match self.awaits() {
            Awaited::Action(number) => Some(number),
            Awaited::Nothing
            | Awaited::Child(_)
            | Awaited::Signal
            | Awaited::Approval
            | Awaited::Verdict
            | Awaited::Time
            | Awaited::Branches => None,
        }
    }
}

/// The result of a visit to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output.
    pub output: Option<PayloadRef>,
    /// The visit that it is the result of, from 1.
    pub visit: u32,
    /// The scope of the first branch, if the step had branches: their results are read through it.
    pub first_scope: Option<ScopeNumber>,
    /// Attempts made.
    pub attempts: u32,
    /// When its first attempt began, in milliseconds.
    pub started_at_ms: u64,
    /// When it was left, in milliseconds.
    pub completed_at_ms: u64,
    /// The position among the steps that the run has left, which identifies the last one.
    pub order: u64,
}
