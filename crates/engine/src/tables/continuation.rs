//! Work that a turn deferred because it had used up its budget (design rule 13).

use super::{
    Awaited, DefinitionNumber, Iterations, PayloadRef, UncheckedOutput, UndoOwner, tables,
};
use crate::definition::{BuiltInTerminal, StepIndex, Target};
use crate::ids::{OutcomeName, RunNumber, ScopeNumber};
use crate::mostly_default::{ConstDefault, MostlyDefault};
use serde::{Deserialize, Serialize};

tables! {
    /// By run, in the order in which it was deferred. Live until the run's continuation fires.
    64 PendingWorks((RunNumber, u64)) -> Work;
}

/// The state of a run's deferred work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// When the timer that resumes the work is due, in milliseconds.
    pub due_ms: u64,
    /// The position of the next deferred work.
    pub next: u64,
    /// The position of the next work that was deferred before, or follows from such work: it goes before the rest.
    pub next_again: u64,
}

/// One piece of work on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A step is entered.
    Enter {
        /// In this scope.
        scope: ScopeNumber,
        /// The step.
        step: StepIndex,
    },
    /// A run that was resumed, or a scope below it, continues where it has stopped (W89).
    Continue {
        /// The scope; [`ScopeNumber::ROOT`] is the run.
        scope: ScopeNumber,
    },
    /// A step is entered whose time has come (W74).
    EnterDelayed {
        /// The activation.
        activation: u64,
    },
    /// A run step's target is invoked, for the first time or again.
    Execute {
        /// The activation.
        activation: u64,
    },
    /// A child run is begun for a step; its input may still need a verdict (W4).
    BeginChild {
        /// The activation.
        activation: u64,
    },
    /// A child's input was validated (W4).
    DecideChild(ChildInputVerdict),
    /// The output of a step was validated (W67).
    DecideOutput {
        /// The activation.
        activation: u64,
        /// The output.
        output: UncheckedOutput,
        /// The result of the validation.
        verdict: SchemaVerdict,
    },
    /// The output of the run was validated (W67).
    DecideRunOutput {
        /// The result of the validation.
        verdict: SchemaVerdict,
    },
    /// A target result arrived for an activation.
    FinishStep {
        /// The activation.
        activation: u64,
        /// The outcome.
        target_result: TargetResult,
    },
    /// A child that waited for its concurrency keys begins (W84).
    ChildBegan {
        /// The activation that waits for it.
        activation: u64,
        /// The child.
        child: RunNumber,
    },
    /// A child has ended.
    ChildEnded {
        /// The activation that waits for it.
        activation: u64,
        /// The child.
        child: RunNumber,
    },
    /// A branch of a step begins (W56).
    BeginBranch(BranchPlace),
    /// Items of a step are written to separate rows (W57).
    SplitItems(ItemPosition),
    /// The next iteration of a step begins, if another one may run (W57).
    BeginIteration {
        /// The activation of the step.
        activation: u64,
    },
    /// The item rows of a step that the run has left are deleted.
    ForgetItems(FormerItems),
    /// A scope below the run ends (W51).
    EndScope(ScopeEnd),
    /// A scope is cancelled with everything below it (W54).
    CancelScope {
        /// The scope.
        scope: ScopeNumber,
    },
    /// The handler of a cancelled step begins (W81).
    BeginOnCancel {
        /// Its activation.
        activation: u64,
    },
    /// The handler of a cancelled step has ended (W81).
    CancelledStepEnded {
        /// The cancelled scope that ends only after it; [`ScopeNumber::ROOT`] is the run.
        scope: ScopeNumber,
    },
    /// What is kept of the branches of a former visit is deleted.
    ForgetBranches(FormerBranches),
    /// The signals that an attempt at a block has taken are put back or discarded (W69).
    SettleSignals(AttemptSignals),
    /// What the scopes below a run that has ended have written to the state is dropped.
    ForgetWrites,
    /// A run that waits for its concurrency keys begins, if it comes next at all of them (W84).
    TakeKeys,
    /// The runs that wait for concurrency keys before this one are cancelled, and those that have held them for the longest
    /// time (W84).
    ReplaceHolders(Replacement),
    /// The run reaches a terminal.
    Finish(Ending),
    /// The run is cancelled, by a caller or with its parent (W17, W18).
    Cancel {
        /// The reason that the caller gave, or that the parent ended; `None` if the caller gave no reason.
        reason: Option<String>,
    },
    /// The newest compensation is made (W82).
    Undo {
        /// For what.
        owner: UndoOwner,
    },
    /// A step whose blocks were undone is tried again, or left (W82a).
    ConcludeUndone {
        /// The activation.
        activation: u64,
    },
    /// What goes before the end of the run continues, or is over (W83).
    NextPhase,
    /// The run ends: what goes before its end is over (W83).
    EndRun,
    /// The run ends immediately, without its handlers (W81).
    Force {
        /// The reason that the caller gave, or that the parent ended.
        reason: Option<String>,
    },
    /// The run has timed out (W73).
    TimeOut,
    /// A step or an attempt at it has taken too long (W70).
    TimeOutStep(OverdueStep),
}

/// The result of validating the input of a child (W4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildInputVerdict {
    /// The activation of the step that starts the child.
    pub activation: u64,
    /// The definition against which the input was validated.
    pub definition: DefinitionNumber,
    /// The result of the validation.
    pub verdict: SchemaVerdict,
}

/// How a run is about to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The scope that led there.
    pub scope: ScopeNumber,
    /// The terminal: never [`Target::Step`].
    pub terminal: Target,
    /// Why, where the terminal does not say.
    pub detail: Option<String>,
    /// What led there.
    pub cause: EndCause,
}

impl Ending {
    /// The end that the engine decides on: no step leads to it.
    pub(crate) fn of_engine(terminal: BuiltInTerminal, detail: Option<String>, code: &str) -> Self {
        Self {
            scope: ScopeNumber::ROOT,
            terminal: Target::BuiltIn(terminal),
            detail,
            cause: EndCause {
                code: code.to_owned(),
                step: None,
                outcome: None,
            },
        }
    }
}

/// What led to the end of a run (W80).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCause {
    /// The code of the failure, or that of the engine.
    pub code: String,
    /// The step, if one led there.
    pub step: Option<StepIndex>,
    /// Its outcome.
    pub outcome: Option<OutcomeName>,
}

/// A step whose timer has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverdueStep {
    /// The activation.
    pub activation: u64,
    /// When it was due, in milliseconds.
    pub due_ms: u64,
    /// The timeout: [`StepTimeout::Attempt`] or [`StepTimeout::Total`].
    pub timeout: StepTimeout,
}

/// The timeouts of a step (W70).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepTimeout {
    /// Of an attempt.
    Attempt,
    /// Of all attempts.
    Total,
    /// Of a task that waits for a worker.
    Queue,
    /// Of a task that a worker holds, from touch to touch.
    Heartbeat,
}

impl StepTimeout {
    /// The code of the error.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Attempt => "attempt_timeout",
            Self::Total => "total_timeout",
            Self::Queue => "queue_timeout",
            Self::Heartbeat => "heartbeat_timeout",
        }
    }

    /// Describes what did not happen within `ms`.
    pub(crate) fn message(self, ms: u64) -> String {
        match self {
            Self::Attempt => format!("expected the attempt to end within {ms} ms, but it did not"),
            Self::Total => format!("expected the step to end within {ms} ms, but it did not"),
            Self::Queue => {
                format!("expected a worker to take the task within {ms} ms, but none did")
            }
            Self::Heartbeat => format!("expected a report within {ms} ms, but none came"),
        }
    }
}

/// How far a run has come with cancelling those that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// Which of its concurrency keys comes next.
    pub place: u32,
    /// The runs before this position in the queue of that key are cancelled already.
    pub from: u64,
}

/// The place of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchPlace {
    /// The activation of the step.
    pub activation: u64,
    /// The position of the branch.
    pub position: u32,
}

/// A place in the array of a step's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemPosition {
    /// The activation of the step.
    pub activation: u64,
    /// The index of an item.
    pub index: u32,
    /// The byte offset of the item in the text of the array.
    pub offset: u32,
}

/// The items of a step that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerItems {
    /// The activation of the step.
    pub activation: u64,
    /// The scope of the first iteration.
    pub first_scope: ScopeNumber,
    /// How many items there were.
    pub total_count: u32,
    /// The first one whose rows may be left.
    pub index: u32,
    /// Whether an iteration may not have succeeded: what a resume would need of it is deleted, too (W89).
    pub has_resumable: bool,
}

impl FormerItems {
    /// All items of a step.
    pub(crate) fn of(activation: u64, iterations: &Iterations) -> Self {
        Self {
            activation,
            first_scope: iterations.first_scope,
            total_count: iterations.total_count,
            index: 0,
            has_resumable: iterations.good_count < iterations.begun_count,
        }
    }
}

/// The end of a scope below the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeEnd {
    /// The scope.
    pub scope: ScopeNumber,
    /// The step that led there.
    pub step: StepIndex,
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Why it failed, if it did.
    pub reason: Option<String>,
    /// False if a non-retryable failure led to it (A5).
    pub is_retryable: bool,
    /// More about the failure that led to it.
    pub cause: FailureCause,
}

/// An attempt at a block that has ended, with the signals that its steps have taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSignals {
    /// The scope of the attempt.
    pub scope: ScopeNumber,
    /// The attempts around it.
    pub around: Vec<ScopeNumber>,
    /// Whether the signals are put back for the next attempt; otherwise they are discarded.
    pub is_retried: bool,
}

/// The branches of a former visit to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerBranches {
    /// The scope of the first branch.
    pub first_scope: ScopeNumber,
    /// How many branches there were.
    pub count: u32,
    /// Whether the results of their steps are kept: only what a resume would need is deleted (W89).
    pub keeps_results: bool,
}

impl FormerBranches {
    /// A single scope, with the results of its steps.
    pub(crate) fn of_scope(scope: ScopeNumber) -> Self {
        Self {
            first_scope: scope,
            count: 1,
            keeps_results: false,
        }
    }
}

/// What is known of a failure beside its outcome, reason and output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCause {
    /// The code of the error, where the output does not have it.
    pub code: Option<String>,
    /// The timeout of the step that ended the attempt, if one did (W70).
    pub timeout: Option<StepTimeout>,
}

impl ConstDefault for FailureCause {
    const DEFAULT: &'static Self = &Self {
        code: None,
        timeout: None,
    };
}

impl FailureCause {
    pub(crate) fn of_timeout(timeout: StepTimeout) -> Self {
        Self {
            code: None,
            timeout: Some(timeout),
        }
    }
}

/// The result of a step's target, before the step's policies apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetResult {
    /// The source of the result; the activation must still wait for exactly this.
    pub from: Awaited,
    /// The outcome.
    pub outcome: OutcomeName,
    /// The output, stored with the run.
    pub output: Option<PayloadRef>,
    /// Why it failed, if the outcome does not say.
    pub reason: Option<String>,
    /// False for a failure that must skip the step's retries (A5, W12).
    pub is_retryable: bool,
    /// More about a failure.
    pub cause: MostlyDefault<FailureCause>,
    /// The earliest time of what follows, in milliseconds, if the target gave one (W74).
    pub not_before_ms: Option<u64>,
    /// The patch of the state, stored with the run, if the worker gave one (W66).
    pub state_patch: Option<Box<PayloadRef>>,
}

impl TargetResult {
    /// The payloads that it names.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = PayloadRef> + use<> {
        let patch = self.state_patch.as_deref().copied();
        [self.output, patch].into_iter().flatten()
    }

    /// The end of a step that waits for nothing, without an output.
    pub(crate) fn of_engine(outcome: OutcomeName) -> Self {
        Self {
            from: Awaited::Nothing,
            outcome,
            output: None,
            reason: None,
            is_retryable: false,
            cause: MostlyDefault::default(),
            not_before_ms: None,
            state_patch: None,
        }
    }
}

/// The result of validating a value against a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaVerdict {
    /// It satisfies the schema.
    Valid,
    /// It does not.
    Invalid {
        /// The failing path and the reason.
        detail: String,
    },
}
