//! Events as callers see them: the manual's names, a detail, and the rest as JSON (W23).

use super::run::terminal_name;
use crate::definition::{Definition, Target};
use crate::entry::NodeId;
use crate::json::quote;
use crate::tables::{Event, EventKind, HistoryCursor, HistoryRecord};

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
    /// The published name.
    pub type_name: &'static str,
    /// The step that it is about.
    pub step: Option<String>,
    /// What the manual's table says for the type.
    pub detail: String,
    /// What else there is to say, as a JSON object; empty for nothing.
    pub attributes: String,
}

/// A JSON object in the making.
#[derive(Default)]
struct Attributes(String);

impl Attributes {
    fn raw(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        quote(name, &mut self.0);
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    fn number(self, name: &str, value: u64) -> Self {
        self.raw(name, &value.to_string())
    }

    fn text(self, name: &str, value: &str) -> Self {
        let mut quoted = String::new();
        quote(value, &mut quoted);
        self.raw(name, &quoted)
    }

    fn optional(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
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

/// The line of an event with its number and its entry's time, index and leader.
#[must_use]
pub fn describe(
    definition: &Definition,
    event: &Event,
    (seq, at_ms, raft_index, node): (u64, u64, u64, NodeId),
) -> EventView {
    let (type_name, detail, attributes) = words(definition, event);
    EventView {
        seq,
        at_ms,
        raft_index,
        node,
        type_name,
        step: event
            .step
            .map(|step| definition.step(step).name.to_string()),
        detail,
        attributes: attributes.finish(),
    }
}

/// The line that stands for the events that were trimmed (design rule 13).
pub(super) fn trimmed(cursor: &HistoryCursor, next: &HistoryRecord) -> EventView {
    EventView {
        seq: cursor.trimmed_until,
        at_ms: next.at_ms,
        raft_index: next.raft_index,
        node: next.node,
        type_name: "history_trimmed",
        step: None,
        detail: format!(
            "events {} to {}",
            cursor.trimmed_after + 1,
            cursor.trimmed_until
        ),
        attributes: Attributes::default()
            .number("first_seq", cursor.trimmed_after + 1)
            .number("last_seq", cursor.trimmed_until)
            .finish(),
    }
}

fn words(definition: &Definition, event: &Event) -> (&'static str, String, Attributes) {
    let none = Attributes::default;
    let step_name = || {
        event
            .step
            .map_or_else(String::new, |step| definition.step(step).name.to_string())
    };
    let target = |target: &Target| terminal_name(definition, *target);
    match &event.kind {
        EventKind::WorkflowStarted { parent, .. } => {
            let parent = parent.as_ref().map(|parent| parent.as_str());
            (
                "workflow_started",
                String::new(),
                none().optional("parent_run_id", parent),
            )
        }
        EventKind::StepStarted => ("step_started", step_name(), none()),
        EventKind::StepCompleted { outcome, .. } => (
            "step_completed",
            step_name(),
            none().text("outcome", outcome.as_str()),
        ),
        EventKind::StepRetry { attempt } => (
            "step_retry",
            step_name(),
            none().number("attempt", u64::from(*attempt)),
        ),
        EventKind::RetryScheduled { attempt, due_ms } => {
            let attributes = none()
                .number("attempt", u64::from(*attempt))
                .number("due_at_ms", *due_ms);
            ("retry_scheduled", step_name(), attributes)
        }
        EventKind::PollScheduled { poll, due_ms } => {
            let attributes = none()
                .number("poll", u64::from(*poll))
                .number("due_at_ms", *due_ms);
            ("poll_scheduled", step_name(), attributes)
        }
        EventKind::PollExhausted { polls } => (
            "poll_exhausted",
            step_name(),
            none().number("polls", u64::from(*polls)),
        ),
        EventKind::WaitingForSignal {
            signal_type,
            deadline_ms,
        } => {
            let attributes = match deadline_ms {
                Some(deadline_ms) => none().number("deadline_ms", *deadline_ms),
                None => none(),
            };
            ("waiting_for_signal", signal_type.to_string(), attributes)
        }
        EventKind::SignalReceived {
            signal_type, id, ..
        } => {
            let id = id.as_ref().map(|id| id.as_str());
            (
                "signal_received",
                signal_type.to_string(),
                none().optional("signal_id", id),
            )
        }
        EventKind::SignalMatched { signal_type } => {
            ("signal_matched", signal_type.to_string(), none())
        }
        EventKind::SignalTimeout { target: to } => ("signal_timeout", target(to), none()),
        EventKind::RunQuarantined { detail } => ("run_quarantined", detail.clone(), none()),
        EventKind::WorkflowCompleted { terminal } => {
            ("workflow_completed", target(terminal), none())
        }
        EventKind::WorkflowFailed { terminal, detail } => {
            let attributes = none().optional("reason", detail.as_deref());
            ("workflow_failed", target(terminal), attributes)
        }
        EventKind::WorkflowCancelled { terminal, reason } => {
            let detail = reason.clone().unwrap_or_default();
            (
                "workflow_cancelled",
                detail,
                none().text("terminal", &target(terminal)),
            )
        }
        EventKind::WorkflowTimedOut { terminal } => {
            ("workflow_timed_out", target(terminal), none())
        }
        EventKind::ActionNotFound { .. }
        | EventKind::ActionDisabled { .. }
        | EventKind::ChildRefused { .. }
        | EventKind::AwaitingAction { .. }
        | EventKind::ActionStarted { .. }
        | EventKind::ActionRetryScheduled { .. }
        | EventKind::ActionCompleted { .. }
        | EventKind::ChildStarted { .. }
        | EventKind::ChildCompleted { .. } => target_words(&event.kind),
    }
}

/// The words of the events about a step's target.
fn target_words(kind: &EventKind) -> (&'static str, String, Attributes) {
    let none = Attributes::default;
    match kind {
        EventKind::ActionNotFound { action } => ("action_not_found", action.to_string(), none()),
        EventKind::ActionDisabled { action } => ("action_disabled", action.to_string(), none()),
        EventKind::ChildRefused { detail } => ("child_refused", detail.clone(), none()),
        EventKind::AwaitingAction { action, action_run } => {
            let attributes = none().text("action_run_id", &action_run.to_string());
            ("awaiting_action", action.to_string(), attributes)
        }
        EventKind::ActionStarted {
            action_run,
            worker,
            attempt,
        } => {
            let attributes = none()
                .text("action_run_id", &action_run.to_string())
                .number("attempt", u64::from(*attempt));
            ("action_started", worker.to_string(), attributes)
        }
        EventKind::ActionRetryScheduled {
            action_run,
            attempt,
            due_ms,
            message,
        } => {
            let attributes = none()
                .text("action_run_id", &action_run.to_string())
                .number("attempt", u64::from(*attempt))
                .number("due_at_ms", *due_ms);
            ("action_retry_scheduled", message.clone(), attributes)
        }
        EventKind::ActionCompleted {
            action_run,
            outcome,
        } => {
            let attributes = none().text("action_run_id", &action_run.to_string());
            ("action_completed", outcome.to_string(), attributes)
        }
        EventKind::ChildStarted { child } => ("child_started", child.to_string(), none()),
        EventKind::ChildCompleted { child, outcome } => (
            "child_completed",
            outcome.to_string(),
            none().text("child_run_id", child.as_str()),
        ),
        other => panic!("expected an event about a target, but found {other:?}"),
    }
}
