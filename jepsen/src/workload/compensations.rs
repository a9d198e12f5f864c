//! Runs that fail or are cancelled, whose steps external workers execute: each acknowledged run ends as it must, what it has
//! done is undone once, in the reverse order, and its handler is executed after that.

use super::calls::{
    Cancels, attempts, cancel_and_record, define, events, found_in, read_ended, run, start,
};
use super::workers;
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once, numbered};
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-compensations";
const DEFINITION: &str = "kind: Workflow
name: chaos-compensations
version: \"1.0.0\"
defaults: {retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}}
steps:
  - name: one
    run: \"@actions/chaos-book\"
    inputMapping: {key: $.input.key, name: one}
    compensate: {run: \"@actions/chaos-book\", inputMapping: {key: $.input.key, name: undo-one}, retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}}
  - name: fan
    parallel:
      branches:
        left:
          run: \"@actions/chaos-book\"
          inputMapping: {key: $.input.key, name: left}
          compensate: {run: \"@actions/chaos-book\", inputMapping: {key: $.input.key, name: undo-left}, retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}}
        right:
          run: \"@actions/chaos-book\"
          inputMapping: {key: $.input.key, name: right}
          compensate: {run: \"@actions/chaos-book\", inputMapping: {key: $.input.key, name: undo-right}, retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}}
  - name: fall
    run: \"@actions/chaos-missing\"
onError: [{name: page, run: \"@actions/chaos-book\", inputMapping: {key: $.input.key, name: page}}]
onCancel: [{name: tidy, run: \"@actions/chaos-book\", inputMapping: {key: $.input.key, name: tidy}}]
";
/// The steps that have a compensation.
const UNDONE: [&str; 3] = ["one", "left", "right"];
const ACTIONS: &[&str] = &["chaos-book"];
const PAUSE: Duration = Duration::from_millis(150);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 120;

/// Runs that are undone.
#[derive(Debug, Default)]
pub(super) struct Compensations {
    keys: AtomicU64,
}

/// The final state of a run.
#[derive(Debug, Deserialize, Serialize)]
struct Ended {
    key: String,
    run_id: String,
    status: String,
    compensation: String,
    seqs: Vec<u64>,
    /// The steps with a compensation whose action succeeded, in the order of their success.
    done: Vec<String>,
    /// Those that were undone, in that order.
    undone: Vec<String>,
    /// The steps of handlers that succeeded.
    handled: Vec<String>,
    /// Whether a handler began before a compensation ended.
    is_mixed: bool,
    /// Whether something began before everything that was cancelled had ended (W54).
    is_hasty: bool,
}

impl Workload for Compensations {
    fn name(&self) -> &'static str {
        "compensations"
    }

    fn prepare(&self, flo: &Flo) {
        workers::register(flo, ACTIONS[0]);
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!(
                "compensations-{}",
                self.keys.fetch_add(1, Ordering::Relaxed)
            );
            let is_cancelled = random.random_ratio(1, 3);
            let pause = Duration::from_millis(random.random_range(0..300));
            // The history has the outcome.
            if let Ok(run_id) = start(session, WORKFLOW, &key).await
                && is_cancelled
            {
                session.rest(pause).await;
                cancel_and_record(session, run_id, &key).await;
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn assist(&self, session: Session) -> BoxFuture<'static, ()> {
        workers::work_and_try(session, ACTIONS, workers::fail_first).boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        read_ended(session, WORKFLOW, LOOKS_MAX, read).boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let ended: Vec<Ended> = found_in(history, self.name());
        let starts = attempts(history, self.name(), "start");
        let cancels = Cancels::of(history, self.name());
        let found = ended
            .iter()
            .map(|run| (run.key.clone(), run.run_id.clone()));
        let mut violations = exactly_once(&starts, &found.collect::<Vec<_>>());
        for run in &ended {
            violations.extend(run.check(cancels.allow(&run.key, &run.status)));
        }
        violations
    }
}

impl Ended {
    fn check(&self, is_status_allowed: bool) -> Vec<Violation> {
        let Self {
            key,
            status,
            done,
            undone,
            handled,
            ..
        } = self;
        let mut violations = numbered(&format!("the history of {key}"), &self.seqs);
        let mut wrong = |text: String| violations.push(Violation::new(text));
        let handler = match status.as_str() {
            "RUN_STATUS_FAILED" if is_status_allowed => "page",
            "RUN_STATUS_CANCELLED" if is_status_allowed => "tidy",
            _ => {
                wrong(format!("{key} should not end with the status {status}"));
                return violations;
            }
        };
        let reversed: Vec<&String> = done.iter().rev().collect();
        if undone.iter().collect::<Vec<_>>() != reversed {
            wrong(format!("{key} has done {done:?}, but undone {undone:?}"));
        } else if status == "RUN_STATUS_FAILED" && done.len() != UNDONE.len() {
            wrong(format!("{key} failed after {done:?}"));
        } else if handled != &[handler] {
            wrong(format!(
                "{key} executed the handlers {handled:?} instead of {handler}"
            ));
        } else if self.is_mixed {
            wrong(format!(
                "{key} executed its handler before it had undone everything"
            ));
        } else if self.is_hasty {
            wrong(format!(
                "{key} began something before its cancelled steps had ended"
            ));
        } else if self.compensation != expected_compensation(done) {
            wrong(format!(
                "{key} shows the compensation {}",
                self.compensation
            ));
        }
        violations
    }
}

/// What a run shows that has done these steps.
fn expected_compensation(done: &[String]) -> &'static str {
    match done.is_empty() {
        true => "COMPENSATION_NONE",
        false => "COMPENSATION_DONE",
    }
}

async fn read(session: &Session, run_id: &str) -> Result<Ended, ClientError> {
    let run = run(&session.client, run_id).await?;
    let events = events(&session.client, run_id).await?;
    let input: Value = serde_json::from_slice(&run.input).unwrap_or_default();
    let first_undone = events
        .iter()
        .find(|event| event.r#type == "compensation_started");
    let first_undone = first_undone.map_or(u64::MAX, |event| event.seq);
    let done = events.iter().filter(|event| {
        let is_success = event.r#type == "action_completed" && event.detail == "success";
        is_success && event.seq < first_undone && UNDONE.contains(&event.step.as_str())
    });
    let handled = events.iter().filter(|event| {
        let attributes = String::from_utf8_lossy(&event.attributes);
        let is_success = event.r#type == "step_completed" && attributes.contains("\"success\"");
        is_success && ["page", "tidy"].contains(&event.detail.as_str())
    });
    let undone = events
        .iter()
        .filter(|event| event.r#type == "compensation_completed");
    let last_undone = undone.clone().map(|event| event.seq).max();
    let first_handled = events
        .iter()
        .filter(|event| event.r#type == "step_started")
        .filter(|event| ["page", "tidy"].contains(&event.detail.as_str()))
        .map(|event| event.seq)
        .min();
    Ok(Ended {
        key: input["key"].as_str().unwrap_or_default().to_owned(),
        run_id: run_id.to_owned(),
        status: run.status().as_str_name().to_owned(),
        compensation: run.compensation().as_str_name().to_owned(),
        seqs: events.iter().map(|event| event.seq).collect(),
        done: done.map(|event| event.step.clone()).collect(),
        undone: undone.map(|event| event.detail.clone()).collect(),
        handled: handled.map(|event| event.detail.clone()).collect(),
        is_mixed: last_undone
            .zip(first_handled)
            .is_some_and(|(last, first)| first < last),
        is_hasty: is_hasty(&events),
    })
}

/// Whether a step or a compensation begins while the run is in the phase `cancelling`.
fn is_hasty(events: &[v1::Event]) -> bool {
    let is_cancelling =
        |event: &v1::Event| event.r#type == "phase_changed" && event.detail == "cancelling";
    let after = events
        .iter()
        .skip_while(|event| !is_cancelling(event))
        .skip(1);
    let mut within = after.take_while(|event| event.r#type != "phase_changed");
    within.any(|event| ["step_started", "compensation_started"].contains(&event.r#type.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};
    use serde_json::json;
    use std::collections::BTreeMap;

    fn check(change: impl Fn(&mut Value)) -> usize {
        let start = Operation {
            name: "start".to_owned(),
            input: json!({"key": "k"}),
            ..Operation::sample("compensations", Outcome::Ok)
        };
        let mut ended = json!([{"key": "k", "run_id": "r", "status": "RUN_STATUS_FAILED",
            "compensation": "COMPENSATION_DONE", "seqs": [1, 2], "done": UNDONE,
            "undone": ["right", "left", "one"], "handled": ["page"], "is_mixed": false, "is_hasty": false}]);
        change(&mut ended[0]);
        let history = History {
            operations: vec![start],
            final_reads: BTreeMap::from([("compensations".to_owned(), ended)]),
            ..History::default()
        };
        Compensations::default().check(&history).len()
    }

    #[test]
    fn a_lost_repeated_or_misplaced_compensation_is_found() {
        assert_eq!(check(|_| {}), 0);
        assert_eq!(check(|run| run["status"] = json!("RUN_STATUS_WAITING")), 1);
        assert_eq!(
            check(|run| run["status"] = json!("RUN_STATUS_CANCELLED")),
            1
        );
        assert_eq!(check(|run| run["undone"] = json!(["right", "left"])), 1);
        assert_eq!(
            check(|run| run["undone"] = json!(["left", "right", "one"])),
            1
        );
        let twice = ["right", "left", "one", "one"];
        assert_eq!(check(|run| run["undone"] = json!(twice)), 1);
        assert_eq!(check(|run| run["handled"] = json!([])), 1);
        assert_eq!(check(|run| run["is_mixed"] = json!(true)), 1);
        assert_eq!(check(|run| run["is_hasty"] = json!(true)), 1);
        assert_eq!(
            check(|run| run["compensation"] = json!("COMPENSATION_PARTIAL")),
            1
        );
    }

    #[test]
    fn what_begins_before_cancelled_steps_have_ended_is_found() {
        let event = |(r#type, detail): (&str, &str)| v1::Event {
            r#type: r#type.to_owned(),
            detail: detail.to_owned(),
            ..v1::Event::default()
        };
        let is_found = |events: &[(&str, &str)]| {
            is_hasty(&events.iter().copied().map(event).collect::<Vec<_>>())
        };
        let cancelling = ("phase_changed", "cancelling");
        let ended = ("step_cancelled", "one");
        let phase = ("phase_changed", "compensating");
        let begun = ("compensation_started", "one");
        assert!(!is_found(&[
            ("step_started", "one"),
            cancelling,
            ended,
            phase,
            begun
        ]));
        assert!(is_found(&[cancelling, begun, ended, phase]));
    }
}
