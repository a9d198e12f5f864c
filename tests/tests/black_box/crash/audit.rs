//! Checks each run at the end.

use super::orders::{self, Placed};
use crate::calls;
use crate::history::{self, Event};
use flotilla_client::{Client, v1};
use serde_json::Value;

/// The steps of the workflow, in order.
const STEPS: [&str; 4] = ["start", "pack", "await_payment", "ship"];

/// Expects every run to have completed with the right output and a sound history.
pub(crate) async fn expect_sound(client: &Client, placed: &Placed) {
    let mut retried = 0;
    for (&order, run_id) in placed {
        let run = calls::run(client, run_id).await;
        assert_eq!(run.status(), v1::RunStatus::Completed, "{run:?}");
        let output: Value = serde_json::from_slice(run.output()).expect("an output is JSON");
        assert_eq!(output, orders::output(order), "{run:?}");

        let events = events(client, run_id).await;
        history::expect_sound(run_id, &events);
        assert_eq!(run.history_event_count, events.last().expect("sound").seq);
        let completed = events.iter().filter(|event| event.kind == "step_completed");
        let steps: Vec<&str> = completed.map(|event| event.step.as_str()).collect();
        assert_eq!(steps, STEPS, "{run_id}: {events:#?}");
        for (kind, expected) in [
            ("signal_received", 1),
            ("signal_matched", 1),
            ("child_started", 1),
            ("child_completed", 1),
        ] {
            let found = history::count(&events, kind);
            assert_eq!(found, expected, "{kind} in {run_id}: {events:#?}");
        }
        retried += retries(order, run_id, &events);
    }
    assert!(retried > 0, "expected retries of steps");
}

/// How many retries steps had: never more than a handler had failures.
fn retries(order: u64, run_id: &str, events: &[Event]) -> usize {
    let failures = usize::try_from(orders::failures(order)).expect("a small number");
    let of = |step: &str| {
        let is_retry = |event: &&Event| event.kind == "step_retry" && event.step == step;
        let retries = events.iter().filter(is_retry).count();
        assert!(retries <= failures, "{step} of {run_id}: {events:#?}");
        retries
    };
    of("start") + of("ship")
}

async fn events(client: &Client, run_id: &str) -> Vec<Event> {
    let request = v1::GetHistoryRequest {
        run_id: run_id.to_owned(),
        limit: 1_000,
        ..v1::GetHistoryRequest::default()
    };
    let page = client.get_history(request).await.expect("a history");
    assert!(!page.has_more, "these histories are short");
    page.events.into_iter().map(Event::from).collect()
}
