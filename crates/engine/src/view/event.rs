//! Renders history events for callers: the manual's name, a detail, and attributes as JSON (W23).

use super::event_type::EventType;
use super::plan_event;
use super::scope_tree::ScopeKind;
use crate::definition::{CallRole, Definition, StepIndex, TriggerIndex};
use crate::ids::{ActionRunNumber, Approver, Identity, NodeId, RunId, SignalId, StateKey};
use crate::json::quote;
use crate::scope_path;
use crate::stream::RecordId;
use crate::tables::{Event, EventKind, HistoryCursor, HistoryRecord, RunRevisionChange, TaskError};

/// One line of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct EventView {
    /// The number within the run, from 1.
    pub seq: u64,
    /// The time of its entry, in milliseconds.
    pub at_ms: u64,
    /// The place of its entry in the log.
    pub raft_index: u64,
    /// The leader that proposed its entry.
    pub node: NodeId,
    /// The term of that leader; `None` before any term was begun.
    pub term: Option<u64>,
    /// The published name.
    pub type_name: &'static str,
    /// The path of the scope that it is about; empty for the run itself (W53).
    pub scope: String,
    /// The step that it is about.
    pub step: Option<String>,
    /// The visit to that step in its scope, from 1; 0 without a step.
    pub visit: u32,
    /// The detail that the manual defines for the type.
    pub detail: String,
    /// Further attributes as a JSON object; empty if there are none.
    pub attributes: String,
}

/// A JSON object under construction.
#[derive(Default)]
pub(super) struct Attributes(String);

impl Attributes {
    pub(super) fn raw(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        quote(name, &mut self.0);
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    pub(super) fn number(self, name: &str, value: u64) -> Self {
        self.raw(name, &value.to_string())
    }

    fn optional_number(self, name: &str, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => self,
        }
    }

    pub(super) fn text(self, name: &str, value: &str) -> Self {
        let mut quoted = String::new();
        quote(value, &mut quoted);
        self.raw(name, &quoted)
    }

    fn texts(self, name: &str, values: impl Iterator<Item = String>) -> Self {
        let mut list = String::from("[");
        for value in values {
            if list.len() > 1 {
                list.push(',');
            }
            quote(&value, &mut list);
        }
        list.push(']');
        self.raw(name, &list)
    }

    fn optional(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// Something numbered that was put off.
    fn due(self, name: &str, number: u32, due_ms: u64) -> Self {
        self.number(name, u64::from(number))
            .number("due_at_ms", due_ms)
    }

    fn attempt_of(self, action_run: ActionRunNumber, attempt: u32) -> Self {
        self.text("action_run_id", &action_run.to_string())
            .number("attempt", u64::from(attempt))
    }

    fn error(self, error: Option<&TaskError>) -> Self {
        match error {
            Some(error) => self
                .text("code", &error.code)
                .text("message", &error.message),
            None => self,
        }
    }

    fn finish(mut self) -> String {
        if !self.0.is_empty() {
            self.0.push('}');
        }
        self.0
    }
}

/// The line of the event that is number `seq` of its run and belongs to `record`.
#[must_use]
pub fn describe(
    definition: &Definition,
    event: &Event,
    seq: u64,
    record: &HistoryRecord,
) -> EventView {
    EventView {
        type_name: event_type(&event.kind).as_str(),
        scope: scope_path::to_text(definition, &event.scope.path),
        visit: event.visit,
        step: event
            .step
            .map(|step| definition.step(step).name.to_string()),
        detail: detail(definition, event),
        attributes: attributes(definition, &event.kind).finish(),
        ..of_entry(seq, record)
    }
}

/// The event that stands for the trimmed ones (design rule 13).
pub(super) fn trimmed(cursor: &HistoryCursor, next: &HistoryRecord) -> EventView {
    let (first, last) = (cursor.trimming.after + 1, cursor.trimming.until);
    EventView {
        type_name: EventType::HistoryTrimmed.as_str(),
        detail: format!("events {first} to {last}"),
        attributes: Attributes::default()
            .number("first_seq", first)
            .number("last_seq", last)
            .finish(),
        ..of_entry(last, next)
    }
}

/// An event with only its entry's data.
fn of_entry(seq: u64, record: &HistoryRecord) -> EventView {
    EventView {
        seq,
        at_ms: record.at_ms,
        raft_index: record.raft_index,
        node: record.node,
        term: (record.term > 0).then_some(record.term),
        type_name: "",
        scope: String::new(),
        step: None,
        visit: 0,
        detail: String::new(),
        attributes: String::new(),
    }
}

/// The type of an event (W23).
fn event_type(kind: &EventKind) -> EventType {
    match kind {
        EventKind::WorkflowStarted { .. } => EventType::WorkflowStarted,
        EventKind::PhaseChanged { .. } => EventType::PhaseChanged,
        EventKind::CompensationStarted => EventType::CompensationStarted,
        EventKind::CompensationCompleted => EventType::CompensationCompleted,
        EventKind::CompensationFailed { .. } => EventType::CompensationFailed,
        EventKind::HandlerFailed { .. } => EventType::HandlerFailed,
        EventKind::StepDelayed { .. } => EventType::StepDelayed,
        EventKind::StepStarted => EventType::StepStarted,
        EventKind::StepCompleted { .. } => EventType::StepCompleted,
        EventKind::StepRetry { .. } => EventType::StepRetry,
        EventKind::FallbackStarted { .. } => EventType::FallbackStarted,
        EventKind::StepTimeout { .. } => EventType::StepTimeout,
        EventKind::RunBegan => EventType::RunBegan,
        EventKind::Info { .. } => EventType::Info,
        EventKind::ConcurrencyWaiting { .. } => EventType::ConcurrencyWaiting,
        EventKind::LoopWarning { .. } => EventType::LoopWarning,
        EventKind::RetryScheduled { .. } => EventType::RetryScheduled,
        EventKind::PollScheduled { .. } => EventType::PollScheduled,
        EventKind::PollExhausted { .. } => EventType::PollExhausted,
        EventKind::WaitingForSignal { .. } => EventType::WaitingForSignal,
        EventKind::SignalReceived { .. } => EventType::SignalReceived,
        EventKind::SignalMatched { .. } => EventType::SignalMatched,
        EventKind::SignalTimeout { .. } => EventType::SignalTimeout,
        EventKind::ActionNotFound { .. } => EventType::ActionNotFound,
        EventKind::ActionDisabled { .. } => EventType::ActionDisabled,
        EventKind::ChildRefused { .. } => EventType::ChildRefused,
        EventKind::AwaitingAction { .. } => EventType::AwaitingAction,
        EventKind::AwaitingReport { .. } => EventType::AwaitingReport,
        EventKind::ActionStarted { .. } => EventType::ActionStarted,
        EventKind::ActionRetryScheduled { .. } => EventType::ActionRetryScheduled,
        EventKind::ActionCompleted { .. } => EventType::ActionCompleted,
        EventKind::ChildStarted { .. } => EventType::ChildStarted,
        EventKind::RunRetried { .. } => EventType::RunRetried,
        EventKind::RunResumed { .. } => EventType::RunResumed,
        EventKind::ChildCompleted { .. } => EventType::ChildCompleted,
        EventKind::WorkflowCompleted { .. } => EventType::WorkflowCompleted,
        EventKind::WorkflowFailed { .. } => EventType::WorkflowFailed,
        EventKind::WorkflowCancelled { .. } => EventType::WorkflowCancelled,
        EventKind::WorkflowTimedOut { .. } => EventType::WorkflowTimedOut,
        EventKind::RunQuarantined => EventType::RunQuarantined,
        EventKind::Plan(event) => plan_event::event_type(event),
        EventKind::ScheduleStarted { .. } => EventType::ScheduleStarted,
        EventKind::TriggerStarted { .. } => EventType::TriggerStarted,
        EventKind::RunReleased => EventType::RunReleased,
        EventKind::StepCancelled => EventType::StepCancelled,
        EventKind::ScopeStarted => EventType::ScopeStarted,
        EventKind::ScopeEnded { .. } => EventType::ScopeEnded,
        EventKind::BranchJoined { .. } => EventType::BranchJoined,
        EventKind::SwitchTaken { .. } => EventType::SwitchTaken,
        EventKind::StateChanged { .. } => EventType::StateChanged,
        EventKind::StateJoined { .. } => EventType::StateJoined,
        EventKind::StateRecorded { .. } => EventType::StateRecorded,
        EventKind::StepTakenOver(_) => EventType::StepTakenOver,
        EventKind::RecordEmitted { .. } => EventType::RecordEmitted,
        EventKind::WaitStarted { .. } => EventType::WaitStarted,
        EventKind::IterationEnded { .. } => EventType::IterationEnded,
        EventKind::ApprovalOpened { .. } => EventType::ApprovalOpened,
        EventKind::ApprovalDecided { .. } => EventType::ApprovalDecided,
    }
}

/// The name of a step; empty without one.
fn step_name(definition: &Definition, step: Option<StepIndex>) -> String {
    step.map_or_else(String::new, |step| definition.step(step).name.to_string())
}

/// The detail that the manual defines for the type: a name, an outcome, a reason.
fn detail(definition: &Definition, event: &Event) -> String {
    match &event.kind {
        EventKind::WorkflowStarted { .. }
        | EventKind::ScheduleStarted { .. }
        | EventKind::RunQuarantined
        | EventKind::RunBegan
        | EventKind::Info { .. }
        | EventKind::StateRecorded { .. }
        | EventKind::RunReleased => String::new(),
        EventKind::TriggerStarted { trigger, .. } => stream_name(definition, *trigger),
        EventKind::RecordEmitted { stream, .. } => stream.to_string(),
        EventKind::StepStarted
        | EventKind::CompensationStarted
        | EventKind::CompensationCompleted
        | EventKind::CompensationFailed { .. }
        | EventKind::StepDelayed { .. }
        | EventKind::StepCancelled
        | EventKind::StepCompleted { .. }
        | EventKind::StepTakenOver(_)
        | EventKind::StepRetry { .. }
        | EventKind::StepTimeout { .. }
        | EventKind::LoopWarning { .. }
        | EventKind::RetryScheduled { .. }
        | EventKind::PollScheduled { .. }
        | EventKind::WaitStarted { .. }
        | EventKind::ApprovalOpened { .. }
        | EventKind::PollExhausted { .. } => step_name(definition, event.step),
        EventKind::FallbackStarted { .. } => fallback_target(definition, event),
        EventKind::WaitingForSignal { signal_type, .. }
        | EventKind::SignalReceived { signal_type, .. }
        | EventKind::SignalMatched { signal_type } => signal_type.to_string(),
        EventKind::PhaseChanged { phase } => phase.name().to_owned(),
        EventKind::RunResumed { from, .. } => step_name(definition, *from),
        EventKind::ActionNotFound { action }
        | EventKind::ActionDisabled { action }
        | EventKind::AwaitingAction { action, .. } => action.to_string(),
        EventKind::ChildRefused { detail: text }
        | EventKind::HandlerFailed { code: text }
        | EventKind::ConcurrencyWaiting { key: text, .. }
        | EventKind::ActionRetryScheduled { message: text, .. } => text.clone(),
        EventKind::AwaitingReport { action_run, .. } => action_run.to_string(),
        EventKind::ActionStarted { worker, .. } => worker.to_string(),
        EventKind::ActionCompleted { outcome, .. }
        | EventKind::ChildCompleted { outcome, .. }
        | EventKind::ScopeEnded { outcome } => outcome.to_string(),
        EventKind::ChildStarted { child: id } | EventKind::RunRetried { next: id } => {
            id.to_string()
        }
        EventKind::StateChanged { keys, .. } | EventKind::StateJoined { keys, .. } => {
            let keys: Vec<&str> = keys.iter().map(StateKey::as_str).collect();
            keys.join(", ")
        }
        EventKind::SwitchTaken {
            target: terminal, ..
        }
        | EventKind::SignalTimeout { target: terminal }
        | EventKind::WorkflowCompleted { terminal }
        | EventKind::WorkflowFailed { terminal, .. } => definition.target_name(*terminal),
        EventKind::WorkflowTimedOut { terminal, detail } => detail
            .clone()
            .unwrap_or_else(|| definition.target_name(*terminal)),
        EventKind::WorkflowCancelled { reason, .. } => reason.clone().unwrap_or_default(),
        EventKind::Plan(event) => plan_event::detail(event),
        EventKind::IterationEnded { index, .. } => index.to_string(),
        EventKind::ApprovalDecided { is_approved, .. } => {
            let decision = if *is_approved { "approved" } else { "rejected" };
            decision.to_owned()
        }
        EventKind::ScopeStarted => scope_kind(definition, event).to_owned(),
        EventKind::BranchJoined { position, .. } => branch_name(definition, event, *position),
    }
}

/// The name of a branch of the step that an event is about.
fn branch_name(definition: &Definition, event: &Event, position: u32) -> String {
    let branches = event.step.map_or(&[][..], |step| definition.branches(step));
    let branch = branches.get(position as usize);
    branch.map_or_else(String::new, |branch| branch.name.to_string())
}

/// The target of the fallback of the step that an event is about.
fn fallback_target(definition: &Definition, event: &Event) -> String {
    let step = event.step.map(|step| definition.step(step));
    let call = step.and_then(|step| step.call(CallRole::Fallback));
    call.map_or_else(String::new, |call| definition.target_text(&call.target))
}

/// What opened the scope that an event is about.
fn scope_kind(definition: &Definition, event: &Event) -> &'static str {
    let opener = event.scope.path.0.last();
    let kind = opener.map_or(ScopeKind::Root, |last| {
        ScopeKind::below(definition, last.step)
    });
    kind.name()
}

/// The further attributes of an event.
fn attributes(definition: &Definition, kind: &EventKind) -> Attributes {
    let none = Attributes::default();
    match kind {
        EventKind::WorkflowStarted { .. }
        | EventKind::ScheduleStarted { .. }
        | EventKind::TriggerStarted { .. } => of_start(definition, kind),
        EventKind::StepCompleted { outcome, .. }
        | EventKind::BranchJoined { outcome, .. }
        | EventKind::IterationEnded { outcome, .. } => none.text("outcome", outcome.as_str()),
        EventKind::StepTakenOver(result) => none.text("outcome", result.outcome.as_str()),
        EventKind::SwitchTaken { arm, .. } => none.optional_number("arm", arm.map(u64::from)),
        EventKind::StateChanged { is_patch: true, .. } => none.raw("patch", "true"),
        EventKind::StepRetry { attempt } => none.number("attempt", u64::from(*attempt)),
        EventKind::FallbackStarted { code } | EventKind::CompensationFailed { code } => {
            none.text("code", code)
        }
        EventKind::StepTimeout { timeout } => none.text("code", timeout.code()),
        EventKind::LoopWarning { visits } => none.number("visits", u64::from(*visits)),
        EventKind::RunResumed {
            revision: Some(change),
            ..
        } => of_change(definition, change),
        EventKind::RetryScheduled { attempt, due_ms } => none.due("attempt", *attempt, *due_ms),
        EventKind::PollScheduled { poll, due_ms } => none.due("poll", *poll, *due_ms),
        EventKind::PollExhausted { polls } => none.number("polls", u64::from(*polls)),
        EventKind::WaitingForSignal { .. }
        | EventKind::ConcurrencyWaiting { .. }
        | EventKind::SignalReceived { .. }
        | EventKind::WaitStarted { .. }
        | EventKind::AwaitingReport { .. }
        | EventKind::StepDelayed { .. }
        | EventKind::ApprovalOpened { .. }
        | EventKind::ApprovalDecided { .. } => of_wait(kind),
        EventKind::AwaitingAction { .. }
        | EventKind::ActionStarted { .. }
        | EventKind::ActionRetryScheduled { .. }
        | EventKind::ActionCompleted { .. } => of_action(kind),
        EventKind::ChildCompleted { child, .. } => none.text("child_run_id", child.as_str()),
        EventKind::WorkflowFailed { .. }
        | EventKind::WorkflowCancelled { .. }
        | EventKind::WorkflowTimedOut { .. } => of_end(definition, kind),
        EventKind::Plan(event) => plan_event::attributes(event),
        EventKind::RecordEmitted { id, .. } => none.text("record_id", &id.to_string()),
        EventKind::Info { number } => Attributes::default().number("number", u64::from(*number)),
        EventKind::StepStarted
        | EventKind::CompensationStarted
        | EventKind::CompensationCompleted
        | EventKind::PhaseChanged { .. }
        | EventKind::HandlerFailed { .. }
        | EventKind::RunBegan
        | EventKind::StateRecorded { .. }
        | EventKind::StateJoined { .. }
        | EventKind::SignalMatched { .. }
        | EventKind::SignalTimeout { .. }
        | EventKind::ActionNotFound { .. }
        | EventKind::ActionDisabled { .. }
        | EventKind::ChildRefused { .. }
        | EventKind::ChildStarted { .. }
        | EventKind::RunRetried { .. }
        | EventKind::RunResumed { revision: None, .. }
        | EventKind::WorkflowCompleted { .. }
        | EventKind::RunQuarantined
        | EventKind::RunReleased
        | EventKind::StepCancelled
        | EventKind::StateChanged {
            is_patch: false, ..
        }
        | EventKind::ScopeStarted
        | EventKind::ScopeEnded { .. } => none,
    }
}

/// The attributes of a change of the revision of a run.
fn of_change(definition: &Definition, change: &RunRevisionChange) -> Attributes {
    Attributes::default()
        .text("version", definition.version.as_str())
        .number("revision", u64::from(change.revision))
        .text("previous_version", change.previous_version.as_str())
        .number("previous_revision", u64::from(change.previous_revision))
}

/// The attributes of the start of a run.
fn of_start(definition: &Definition, kind: &EventKind) -> Attributes {
    let none = Attributes::default();
    match kind {
        EventKind::WorkflowStarted { parent, .. } => {
            none.optional("parent_run_id", parent.as_ref().map(RunId::as_str))
        }
        EventKind::ScheduleStarted { firing_ms } => none.number("scheduled_at_ms", *firing_ms),
        EventKind::TriggerStarted {
            trigger,
            partition,
            records,
        } => none
            .text("stream", &stream_name(definition, *trigger))
            .number("partition", u64::from(*partition))
            .texts("record_ids", records.iter().map(RecordId::to_string)),
        _ => none,
    }
}

/// The attributes of an action run.
fn of_action(kind: &EventKind) -> Attributes {
    let none = Attributes::default();
    match kind {
        EventKind::AwaitingAction { action_run, .. } => {
            none.text("action_run_id", &action_run.to_string())
        }
        EventKind::ActionCompleted {
            action_run, error, ..
        } => none
            .text("action_run_id", &action_run.to_string())
            .error(error.as_ref()),
        EventKind::ActionStarted {
            action_run,
            attempt,
            ..
        } => none.attempt_of(*action_run, *attempt),
        EventKind::ActionRetryScheduled {
            action_run,
            attempt,
            due_ms,
            ..
        } => none
            .attempt_of(*action_run, *attempt)
            .number("due_at_ms", *due_ms),
        _ => none,
    }
}

/// The attributes of a wait, and of what it waits for.
fn of_wait(kind: &EventKind) -> Attributes {
    let none = Attributes::default();
    match kind {
        EventKind::WaitingForSignal { deadline_at_ms, .. }
        | EventKind::AwaitingReport { deadline_at_ms, .. } => {
            none.optional_number("deadline_at_ms", *deadline_at_ms)
        }
        EventKind::SignalReceived { id, .. } => {
            none.optional("signal_id", id.as_ref().map(SignalId::as_str))
        }
        EventKind::ConcurrencyWaiting { position, .. } => {
            none.number("position", u64::from(*position))
        }
        EventKind::WaitStarted { until_ms } => none.number("until_ms", *until_ms),
        EventKind::StepDelayed { due_ms } => none.number("due_at_ms", *due_ms),
        EventKind::ApprovalOpened {
            approvers,
            approvers_count,
            quorum,
            deadline_at_ms,
        } => none
            .texts("approvers", approvers.iter().map(Approver::to_string))
            .number("approvers_count", u64::from(*approvers_count))
            .number("quorum", u64::from(*quorum))
            .optional_number("deadline_at_ms", *deadline_at_ms),
        EventKind::ApprovalDecided { is_approved, actor } => {
            let approved = if *is_approved { "true" } else { "false" };
            let actor = actor.as_ref().map(Identity::as_str);
            none.raw("approved", approved).optional("actor", actor)
        }
        _ => none,
    }
}

/// The attributes of the end of a run that did not complete.
fn of_end(definition: &Definition, kind: &EventKind) -> Attributes {
    let none = Attributes::default();
    match kind {
        EventKind::WorkflowFailed { detail, .. } => none.optional("reason", detail.as_deref()),
        EventKind::WorkflowCancelled { terminal, .. }
        | EventKind::WorkflowTimedOut { terminal, .. } => {
            none.text("terminal", &definition.target_name(*terminal))
        }
        _ => none,
    }
}

/// The stream of a trigger of the definition.
fn stream_name(definition: &Definition, trigger: TriggerIndex) -> String {
    let trigger = definition.trigger(trigger);
    trigger.map_or_else(String::new, |trigger| trigger.stream.to_string())
}
