//! Run histories: one record per run and turn (W23, design rule 4).

mod encoding;

use super::{PayloadRef, Phase, PlanEvent, ScopeId, StepResult, StepTimeout, TaskError, tables};
use crate::definition::{StepIndex, Target, TerminalStatus, TriggerIndex};
use crate::ids::{
    ActionName, ActionRunNumber, Approver, Identity, NodeId, OutcomeName, RunId, RunNumber,
    SignalId, SignalType, StateKey, StreamName, WorkerId, WorkflowVersion,
};
use crate::limits::{EVENT_BYTES, RECORD_ID_BYTES};
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};

tables! {
    /// By run and the sequence number of the record's first event. Lives as long as the run, unless it is
    /// trimmed.
    10 History((RunNumber, u64)) -> HistoryRecord => HistoryRecord::content_bytes;
}

/// The events of one run in one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// The entry's time, in milliseconds.
    pub at_ms: u64,
    /// The entry's index in the log.
    pub raft_index: u64,
    /// The leader that proposed the entry.
    pub node: NodeId,
    /// The leader's term; 0 before the first term.
    pub term: u64,
    /// Payloads that the run had stored by the end of the turn.
    pub payloads_count: u64,
    /// At least one.
    pub events: Vec<Event>,
}

/// A fact in a run's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The scope that it is about.
    pub scope: ScopeId,
    /// The step that it is about.
    pub step: Option<StepIndex>,
    /// The visit to that step in its scope, from 1; 0 without a step.
    pub visit: u32,
    /// The activation of that step; `None` if the event is not about an activation or comes after its end.
    pub activation: Option<u64>,
    /// What happened.
    pub kind: EventKind,
}

impl HistoryRecord {
    /// The action runs that the turn created, each with the position of the event of its creation among the events.
    pub fn created_action_runs(&self) -> impl Iterator<Item = (u64, ActionRunNumber)> {
        let events = (0..).zip(&self.events);
        events.filter_map(|(position, event)| match event.kind {
            EventKind::AwaitingAction { action_run, .. } => Some((position, action_run)),
            _ => None,
        })
    }

    /// The size of the events, in bytes. Names and ids, of which an event has a few, count as a constant.
    fn content_bytes(&self) -> usize {
        self.events.iter().map(Event::content_bytes).sum()
    }
}

impl Event {
    /// Its size, in bytes.
    pub(crate) fn content_bytes(&self) -> usize {
        EVENT_BYTES + self.kind.content_bytes()
    }
}

/// The length of the texts in a list, in bytes, with those of their lengths.
fn list_bytes<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| size_of::<u32>() + text.len()).sum()
}

impl EventKind {
    /// The size of the texts and lists, in bytes.
    fn content_bytes(&self) -> usize {
        match self {
            Self::ChildRefused { detail: text }
            | Self::ActionRetryScheduled { message: text, .. } => text.len(),
            Self::ActionCompleted { error, .. } => error
                .as_ref()
                .map_or(0, |error| error.code.len() + error.message.len()),
            Self::WorkflowFailed { detail: text, .. }
            | Self::WorkflowTimedOut { detail: text, .. }
            | Self::WorkflowCancelled { reason: text, .. } => text.as_ref().map_or(0, String::len),
            Self::FallbackStarted { code }
            | Self::HandlerFailed { code }
            | Self::CompensationFailed { code } => code.len(),
            Self::Plan(event) => event.content_bytes(),
            Self::ConcurrencyWaiting { key, .. } => key.len(),
            Self::TriggerStarted { records, .. } => records.len() * RECORD_ID_BYTES,
            Self::WorkflowStarted { .. }
            | Self::RunBegan
            | Self::Info { .. }
            | Self::StateRecorded { .. }
            | Self::StepTakenOver(_)
            | Self::StepDelayed { .. }
            | Self::PhaseChanged { .. }
            | Self::CompensationStarted
            | Self::CompensationCompleted
            | Self::StepStarted
            | Self::StepCompleted { .. }
            | Self::StepRetry { .. }
            | Self::StepTimeout { .. }
            | Self::LoopWarning { .. }
            | Self::RetryScheduled { .. }
            | Self::PollScheduled { .. }
            | Self::PollExhausted { .. }
            | Self::WaitingForSignal { .. }
            | Self::SignalReceived { .. }
            | Self::SignalMatched { .. }
            | Self::SignalTimeout { .. }
            | Self::ActionNotFound { .. }
            | Self::ActionDisabled { .. }
            | Self::AwaitingAction { .. }
            | Self::AwaitingReport { .. }
            | Self::ActionStarted { .. }
            | Self::ChildStarted { .. }
            | Self::RunRetried { .. }
            | Self::RunResumed { .. }
            | Self::ChildCompleted { .. }
            | Self::WorkflowCompleted { .. }
            | Self::RunQuarantined
            | Self::ScheduleStarted { .. }
            | Self::RunReleased
            | Self::StepCancelled
            | Self::ScopeStarted
            | Self::ScopeEnded { .. }
            | Self::BranchJoined { .. }
            | Self::SwitchTaken { .. }
            | Self::RecordEmitted { .. }
            | Self::WaitStarted { .. }
            | Self::IterationEnded { .. } => 0,
            Self::ApprovalDecided { actor, .. } => {
                actor.as_ref().map_or(0, |actor| actor.as_str().len())
            }
            Self::ApprovalOpened { approvers, .. } => {
                list_bytes(approvers.iter().map(Approver::as_str))
            }
            Self::StateChanged { keys, .. } => list_bytes(keys.iter().map(StateKey::as_str)),
            Self::StateJoined { keys, removed, .. } => {
                let removed = list_bytes(removed.iter().map(String::as_str));
                list_bytes(keys.iter().map(StateKey::as_str)) + removed
            }
        }
    }
}

impl EventKind {
    /// The end of a run at a terminal.
    pub(crate) fn of_end(status: TerminalStatus, terminal: Target, detail: Option<String>) -> Self {
        match status {
            TerminalStatus::Completed => Self::WorkflowCompleted { terminal },
            TerminalStatus::Failed => Self::WorkflowFailed { terminal, detail },
            TerminalStatus::Cancelled => Self::WorkflowCancelled {
                terminal,
                reason: detail,
            },
            TerminalStatus::TimedOut => Self::WorkflowTimedOut { terminal, detail },
        }
    }

    /// Whether the history keeps it for the steps of an iteration: failures, retries, signals, decisions and cancels. The rest would
    /// push the other events of the run out of its history (W57).
    pub(crate) fn is_kept_in_iterations(&self) -> bool {
        match self {
            Self::StepCompleted { outcome, .. }
            | Self::ScopeEnded { outcome }
            | Self::ActionCompleted { outcome, .. }
            | Self::ChildCompleted { outcome, .. } => {
                !matches!(outcome.as_str(), "success" | "skipped" | "approved")
            }
            Self::Plan(event) => event.is_failure(),
            Self::StepStarted
            | Self::StepDelayed { .. }
            | Self::WaitingForSignal { .. }
            | Self::AwaitingAction { .. }
            | Self::AwaitingReport { .. }
            | Self::ActionStarted { .. }
            | Self::ChildStarted { .. }
            | Self::RunRetried { .. }
            | Self::ScopeStarted
            | Self::BranchJoined { .. }
            | Self::SwitchTaken { .. }
            | Self::StateChanged { .. }
            | Self::RecordEmitted { .. }
            | Self::WaitStarted { .. } => false,
            _ => true,
        }
    }
}

/// The manual's events and ours (W23). Variants are appended, never reordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The run began with this input.
    WorkflowStarted {
        /// The input.
        input: PayloadRef,
        /// The parent's id, for a child.
        parent: Option<RunId>,
    },
    /// A run that was to begin later, or waited for its concurrency keys, has begun (W76, W84).
    RunBegan,
    /// The run waits, since a concurrency key is at its limit (W84).
    ConcurrencyWaiting {
        /// The key.
        key: String,
        /// Its position among the runs that wait for the key, from 1.
        position: u32,
    },
    /// The run entered the step.
    StepStarted,
    /// The run left the step (W23).
    StepCompleted {
        /// With this outcome.
        outcome: OutcomeName,
        /// And this output.
        output: Option<PayloadRef>,
    },
    /// The step is executed again.
    StepRetry {
        /// From 2.
        attempt: u32,
    },
    /// The step's target has failed, and its fallback is invoked (W72).
    FallbackStarted {
        /// The code of the error.
        code: String,
    },
    /// The scope has visited the step often (W78).
    LoopWarning {
        /// How often.
        visits: u32,
    },
    /// The step or an attempt at it has taken too long (W70).
    StepTimeout {
        /// The timeout.
        timeout: StepTimeout,
    },
    /// The next attempt was delayed.
    RetryScheduled {
        /// The attempt that will be made.
        attempt: u32,
        /// When, in milliseconds.
        due_ms: u64,
    },
    /// The next poll was delayed.
    PollScheduled {
        /// The poll that will be made, from 1.
        poll: u32,
        /// When, in milliseconds.
        due_ms: u64,
    },
    /// No polls are left (W14).
    PollExhausted {
        /// Polls made.
        polls: u32,
    },
    /// The run waits for a signal.
    WaitingForSignal {
        /// Its type.
        signal_type: SignalType,
        /// When the wait expires, in milliseconds.
        deadline_at_ms: Option<u64>,
    },
    /// A signal arrived.
    SignalReceived {
        /// Its type.
        signal_type: SignalType,
        /// The caller's id for it.
        id: Option<SignalId>,
        /// Its payload.
        payload: PayloadRef,
    },
    /// A signal satisfied a wait.
    SignalMatched {
        /// Its type.
        signal_type: SignalType,
    },
    /// A wait expired.
    SignalTimeout {
        /// Where the run goes next.
        target: Target,
    },
    /// The step's action is not registered.
    ActionNotFound {
        /// The action.
        action: ActionName,
    },
    /// The step's action is disabled.
    ActionDisabled {
        /// The action.
        action: ActionName,
    },
    /// The step's target, a workflow, does not exist (W5) or is disabled (W42).
    ChildRefused {
        /// Why the child run was not started: `expected …, but …`.
        detail: String,
    },
    /// An action run was made for the step.
    AwaitingAction {
        /// The action.
        action: ActionName,
        /// Its run.
        action_run: ActionRunNumber,
    },
    /// A worker took the task.
    ActionStarted {
        /// The action run.
        action_run: ActionRunNumber,
        /// Who took it.
        worker: WorkerId,
        /// The task's attempt, from 1.
        attempt: u32,
    },
    /// A task failed and the action is tried again (A5).
    ActionRetryScheduled {
        /// The action run.
        action_run: ActionRunNumber,
        /// The attempt that will be made.
        attempt: u32,
        /// When, in milliseconds.
        due_ms: u64,
        /// Why the last one failed.
        message: String,
    },
    /// The action run ended.
    ActionCompleted {
        /// The action run.
        action_run: ActionRunNumber,
        /// Its outcome.
        outcome: OutcomeName,
        /// Why it failed.
        error: Option<TaskError>,
    },
    /// A child run began.
    ChildStarted {
        /// Its id.
        child: RunId,
    },
    /// A child run ended.
    ChildCompleted {
        /// Its id.
        child: RunId,
        /// `success` or `failure` (W17).
        outcome: OutcomeName,
    },
    /// The run ended with status completed.
    WorkflowCompleted {
        /// The terminal.
        terminal: Target,
    },
    /// The run ended with status failed.
    WorkflowFailed {
        /// The terminal.
        terminal: Target,
        /// Why, where the terminal does not say.
        detail: Option<String>,
    },
    /// The run was cancelled.
    WorkflowCancelled {
        /// The terminal.
        terminal: Target,
        /// The caller's reason.
        reason: Option<String>,
    },
    /// The run ended with status `timed_out`.
    WorkflowTimedOut {
        /// The terminal.
        terminal: Target,
        /// Why, where the terminal does not say.
        detail: Option<String>,
    },
    /// A panic in this run's turn quarantined it (design rule 10).
    RunQuarantined,
    /// An event in the execution of a plan (W30–W38).
    Plan(PlanEvent),
    /// A firing of the workflow's schedule started the run (W40).
    ScheduleStarted {
        /// The time that the schedule names, in milliseconds.
        firing_ms: u64,
    },
    /// Records of a trigger of the workflow started the run (W41).
    TriggerStarted {
        /// The trigger.
        trigger: TriggerIndex,
        /// The partition of the stream.
        partition: u32,
        /// Their ids, in their order.
        records: Vec<RecordId>,
    },
    /// The run was released from quarantine (design rule 10).
    RunReleased,
    /// The step was cancelled with its scope (W54).
    StepCancelled,
    /// A scope was opened by a step (W53).
    ScopeStarted,
    /// A scope has ended.
    ScopeEnded {
        /// With this outcome.
        outcome: OutcomeName,
    },
    /// A branch of a step has ended (W56).
    BranchJoined {
        /// Its position.
        position: u32,
        /// Its outcome.
        outcome: OutcomeName,
    },
    /// A condition of the step was true, or its default was taken (W60).
    SwitchTaken {
        /// The position of the condition; `None` for the default.
        arm: Option<u16>,
        /// Where it leads.
        target: Target,
    },
    /// The step wrote to the state (W63).
    StateChanged {
        /// The keys.
        keys: Vec<StateKey>,
        /// An object with what was written.
        writes: PayloadRef,
        /// Whether they are a patch of a worker, in which `null` removes a key (W66).
        is_patch: bool,
    },
    /// The step began to wait for a time (W59).
    WaitStarted {
        /// The time, in milliseconds.
        until_ms: u64,
    },
    /// The step appended a record (W62).
    RecordEmitted {
        /// The stream.
        stream: StreamName,
        /// The record.
        id: RecordId,
    },
    /// The step began to wait for a decision (W61).
    ApprovalOpened {
        /// The first of those who may decide; empty for everyone.
        approvers: Vec<Approver>,
        /// How many may decide.
        approvers_count: u16,
        /// How many must approve.
        quorum: u16,
        /// When the wait expires, in milliseconds.
        deadline_at_ms: Option<u64>,
    },
    /// A decision arrived.
    ApprovalDecided {
        /// Whether it is an approval; otherwise, it is a rejection.
        is_approved: bool,
        /// The identity that made it; `None` for a caller without a credential.
        actor: Option<Identity>,
    },
    /// An iteration of a step has ended (W57).
    IterationEnded {
        /// Its index, from 0.
        index: u32,
        /// Its outcome.
        outcome: OutcomeName,
    },
    /// The step is entered later, because the action before it gave a time (W74).
    StepDelayed {
        /// In milliseconds.
        due_ms: u64,
    },
    /// The end of the run is fixed, and the run does something before it (W83).
    PhaseChanged {
        /// What it does.
        phase: Phase,
    },
    /// What an attempt at the step has done is being undone (W82).
    CompensationStarted,
    /// It was undone.
    CompensationCompleted,
    /// It could not be undone.
    CompensationFailed {
        /// The code of the failure.
        code: String,
    },
    /// Another attempt at the run began (W77).
    RunRetried {
        /// Its id.
        next: RunId,
    },
    /// A handler of the run failed (W80, W81).
    HandlerFailed {
        /// The code of its failure.
        code: String,
    },
    /// A worker accepted the task; its outcome arrives in a report (W38, W75).
    AwaitingReport {
        /// The action run.
        action_run: ActionRunNumber,
        /// The deadline of the report, in milliseconds; `None` without one.
        deadline_at_ms: Option<u64>,
    },
    /// The run was resumed (W89).
    RunResumed {
        /// The step of the run itself at which it continues; `None` if it ends or begins.
        from: Option<StepIndex>,
        /// How its revision has changed, if it was resumed with another one.
        revision: Option<Box<RunRevisionChange>>,
    },
    /// A caller, or a task of the step, added an info entry (W92).
    Info {
        /// The number of the entry.
        number: u32,
    },
    /// Writes of scopes below the run became part of its state.
    StateJoined {
        /// The first of the keys.
        keys: Vec<StateKey>,
        /// An object with what was written.
        writes: PayloadRef,
        /// The keys that were removed. In the object, their value is `null`.
        removed: Vec<String>,
    },
    /// The whole state of the run: that with which it begins, or after a sequential loop (W90).
    StateRecorded {
        /// An object.
        state: PayloadRef,
    },
    /// The run began with the result of a step of the run that it retries (W90).
    StepTakenOver(Box<StepResult>),
}

/// How the revision of a run has changed (W89).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRevisionChange {
    /// The version of the previous revision.
    pub previous_version: WorkflowVersion,
    /// The previous revision, 1, 2, 3 … within its version.
    pub previous_revision: u32,
    /// The revision that it has now.
    pub revision: u32,
}
