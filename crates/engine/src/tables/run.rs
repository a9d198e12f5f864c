//! Runs: the hot record of the engine.

use super::{DefinitionNumber, PayloadRef, PlanState, PlanWait, tables};
use crate::definition::{StepIndex, Target, TerminalStatus};
use crate::ids::{
    ActionRunNumber, IdempotencyKey, Namespace, OutcomeName, RunId, RunNumber, WorkflowName,
};
use crate::json::Json;
use crate::stream::RecordId;
use crate::trace::TraceContext;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By number. Live until retention ends.
    6 Runs(RunNumber) -> RunRecord, HOT while |run| run.status.is_open();
    /// Runs whose caller chose the id (W20). Live as long as the run.
    7 RunNames((Namespace, RunId)) -> RunNumber;
    /// Runs by idempotency key (W20). Live as long as the run.
    8 IdempotencyKeys((Namespace, WorkflowName, IdempotencyKey)) -> RunNumber;
    /// Children whose input waits for its schema's verdict (W4), by parent and activation. Live
    /// until the verdict is in.
    25 InputChecks((RunNumber, u32)) -> ();
}

/// A workflow run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Where it belongs.
    pub namespace: Namespace,
    /// Its published id.
    pub id: RunId,
    /// The revision that it is pinned to (W5).
    pub definition: DefinitionNumber,
    /// Where it stands.
    pub status: RunStatus,
    /// How it ended; `None` while it is open.
    pub end: Option<End>,
    /// What people should know about its state (W21a).
    pub detail: Option<String>,
    /// What started it.
    pub triggered_by: TriggeredBy,
    /// The run that waits for it (W17).
    pub parent: Option<ParentLink>,
    /// How many runs are above it (W17).
    pub nesting: u16,
    /// The trace that it was started in, by its caller or its parent's.
    pub trace: Option<TraceContext>,
    /// The caller's key, so that it is forgotten with the run (W20).
    pub idempotency_key: Option<IdempotencyKey>,
    /// The steps that are under way: a run is a set of them (design rule 7).
    pub active: Vec<Activation>,
    /// Activations so far; the next one's number.
    pub activations_count: u32,
    /// What each step that was left ended with; the last time counts.
    pub results: BTreeMap<StepIndex, StepResult>,
    /// Search attributes by their position in the definition; absent ones are missing (W22).
    pub attributes: BTreeMap<u16, AttributeValue>,
    /// The last action run of its steps; each names the one before it.
    pub last_action_run: Option<ActionRunNumber>,
    /// The input.
    pub input: PayloadRef,
    /// The output; set when the run ends with one.
    pub output: Option<PayloadRef>,
    /// Payloads so far; the next one's position.
    pub payloads_count: u32,
    /// Signals so far.
    pub signals_count: u32,
    /// Where its history stands.
    pub history: HistoryCursor,
    /// In milliseconds.
    pub started_at_ms: u64,
    /// In milliseconds; set when the run ends.
    pub completed_at_ms: Option<u64>,
}

/// The manual's run statuses, those of an open run (W21); an ended one has its [`End`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RunStatus {
    /// Created but not yet started.
    Pending,
    /// Between two waits.
    Running,
    /// Waits for a signal, an action, a child or a timer.
    Waiting,
    /// Reached a terminal.
    Ended(TerminalStatus),
}

impl RunStatus {
    /// All statuses, in the manual's order.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Ended(TerminalStatus::Completed),
        Self::Ended(TerminalStatus::Failed),
        Self::Ended(TerminalStatus::Cancelled),
        Self::Ended(TerminalStatus::TimedOut),
    ];

    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Ended(status) => status.name(),
        }
    }

    /// Whether the run has not ended.
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Waiting => true,
            Self::Ended(_) => false,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The terminal: never [`Target::Step`].
    pub terminal: Target,
}

/// What started a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TriggeredBy {
    /// A caller.
    Caller,
    /// A step of another run (W17).
    Parent,
    /// Its workflow's schedule (W40).
    Schedule {
        /// The firing, in milliseconds.
        firing_ms: u64,
    },
    /// Its workflow's trigger (W41).
    Trigger {
        /// The first of the records that it began with.
        first: RecordId,
    },
}

/// The run and activation that wait for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// The parent.
    pub run: RunNumber,
    /// Its waiting activation.
    pub activation: u32,
}

/// A step under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Unique within the run.
    pub number: u32,
    /// The step.
    pub step: StepIndex,
    /// The step's attempt, from 1; the action's own attempts are not counted (W13).
    pub attempt: u32,
    /// Polls made since the last attempt began (W14).
    pub polls_count: u32,
    /// When the first attempt began: `within_ms` counts from here (W12). In milliseconds.
    pub started_at_ms: u64,
    /// The mapped input.
    pub input: PayloadRef,
    /// What it waits for.
    pub state: ActivationState,
}

/// What an active step waits for (W21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActivationState {
    /// Nothing: it is executed in this very turn.
    Executing,
    /// An action run.
    Action(ActionRunNumber),
    /// A signal, perhaps until a deadline in milliseconds.
    Signal {
        /// When the wait expires.
        deadline_ms: Option<u64>,
    },
    /// A child run.
    Child(RunNumber),
    /// The verdict on a child's input (W4).
    ChildInput {
        /// The child's definition.
        definition: DefinitionNumber,
    },
    /// The next attempt, at a time in milliseconds.
    Retry {
        /// When it is made.
        due_ms: u64,
    },
    /// The next poll, at a time in milliseconds.
    Poll {
        /// When it is made.
        due_ms: u64,
    },
    /// A plan that is executed.
    Plan(PlanState),
}

impl ActivationState {
    /// The action run that is waited for, a plan's included.
    #[must_use]
    pub fn action_run(&self) -> Option<ActionRunNumber> {
        match self {
            Self::Action(number) => Some(*number),
            Self::Plan(plan) => match plan.wait {
                PlanWait::Action(number) => Some(number),
                PlanWait::Executing | PlanWait::Retry { .. } => None,
            },
            Self::Executing
            | Self::Signal { .. }
            | Self::Child(_)
            | Self::ChildInput { .. }
            | Self::Retry { .. }
            | Self::Poll { .. } => None,
        }
    }
}

/// What a step ended with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output.
    pub output: Option<PayloadRef>,
    /// Attempts made.
    pub attempts: u32,
    /// When its first attempt began, in milliseconds.
    pub started_at_ms: u64,
    /// When it was left, in milliseconds.
    pub completed_at_ms: u64,
    /// Counts the steps that the run has left, so that the last one is known.
    pub order: u32,
}

/// A search attribute's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeValue {
    /// A text.
    String(String),
    /// A JSON number, as it was written.
    Number(Json),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
}

/// Where a run's history stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryCursor {
    /// Events so far: the last one's sequence number.
    pub events_count: u64,
    /// The events after `trimmed_after` up to and including this one were trimmed; 0 for none.
    pub trimmed_until: u64,
    /// See `trimmed_until`.
    pub trimmed_after: u64,
}

impl RunRecord {
    /// The activation `number`, if it is under way.
    #[must_use]
    pub fn activation(&self, number: u32) -> Option<&Activation> {
        self.active
            .iter()
            .find(|activation| activation.number == number)
    }

    /// The activation `number`, if it is under way.
    pub fn activation_mut(&mut self, number: u32) -> Option<&mut Activation> {
        self.active
            .iter_mut()
            .find(|activation| activation.number == number)
    }
}
