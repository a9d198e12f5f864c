//! What a run is doing, derived from its events.

use flotilla_client::WatchUpdate;
use flotilla_client::v1::Event;
use std::fmt;

/// The current activity of a watched run, for a person who waits for its end.
#[derive(Debug, Default)]
pub(super) struct Activity {
    step: String,
    doing: String,
}

impl Activity {
    /// Updates the activity from what was observed of the run.
    pub(super) fn see(&mut self, update: &WatchUpdate) {
        match update {
            WatchUpdate::Event(event) => self.observe(event),
            WatchUpdate::Status(status) => {
                if let Some(detail) = status.detail.as_deref().filter(|detail| !detail.is_empty()) {
                    self.explain(detail);
                }
            }
        }
    }

    /// Updates the activity from the run's next event. Ignores events that change nothing for a
    /// waiting person, and events that only a newer server knows.
    pub(super) fn observe(&mut self, event: &Event) {
        let detail = &event.detail;
        let doing = match event.r#type.as_str() {
            "step_started" | "step_retry" => String::new(),
            "waiting_for_signal" => format!("waits for signal {detail:?}"),
            "approval_opened" => "waits for a decision".to_owned(),
            "awaiting_action" => format!("waits for a worker to take action {detail:?}"),
            "action_started" => format!("run by worker {detail}"),
            "action_retry_scheduled" | "retry_scheduled" => "waits to try again".to_owned(),
            "poll_scheduled" => "waits for the next poll".to_owned(),
            "child_started" => format!("waits for child run {detail}"),
            _ => return,
        };
        self.step.clone_from(&event.step);
        self.doing = doing;
    }

    /// Uses the server's own detail for what the run waits for (W21a).
    pub(super) fn explain(&mut self, detail: &str) {
        detail.clone_into(&mut self.doing);
    }
}

/// The step and what it does; empty before the first step.
impl fmt::Display for Activity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, doing } = self;
        match (step.is_empty(), doing.is_empty()) {
            (true, _) => formatter.write_str(doing),
            (false, true) => write!(formatter, "step {step}"),
            (false, false) => write!(formatter, "step {step}: {doing}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn event(event_type: &str, step: &str, detail: &str) -> Event {
        Event {
            r#type: event_type.to_owned(),
            step: step.to_owned(),
            detail: detail.to_owned(),
            ..Event::default()
        }
    }

    #[test]
    fn each_event_says_what_is_waited_for_now() {
        let mut activity = Activity::default();
        activity.observe(&event("workflow_started", "", "{}"));
        assert_eq!(activity.to_string(), "");
        let mut told = String::new();
        for (event_type, step, detail) in [
            ("step_started", "charge", "charge"),
            ("awaiting_action", "charge", "charge-payment"),
            ("action_started", "charge", "till"),
            ("action_retry_scheduled", "charge", "no answer"),
            ("action_completed", "charge", "success"),
            ("step_started", "approve", "approve"),
            ("waiting_for_signal", "approve", "approval"),
            ("something_new", "approve", "?"),
            ("child_started", "ship", "wfrun-9"),
        ] {
            activity.observe(&event(event_type, step, detail));
            told.push_str(&format!("{event_type}: {activity}\n"));
        }
        activity.explain("no live worker for action \"ship\"");
        told.push_str(&activity.to_string());
        expect![[r#"
            step_started: step charge
            awaiting_action: step charge: waits for a worker to take action "charge-payment"
            action_started: step charge: run by worker till
            action_retry_scheduled: step charge: waits to try again
            action_completed: step charge: waits to try again
            step_started: step approve
            waiting_for_signal: step approve: waits for signal "approval"
            something_new: step approve: waits for signal "approval"
            child_started: step ship: waits for child run wfrun-9
            step ship: no live worker for action "ship""#]]
        .assert_eq(&told);
    }
}
