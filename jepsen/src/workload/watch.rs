//! Runs that are watched to their end: no event is missing or duplicated.

use super::calls::{await_end, define, found_in, run, start};
use super::session::Invocation;
use super::{Session, Workload};
use crate::checker::{Violation, numbered};
use crate::history::History;
use flotilla_client::{ClientError, WatchUpdate, v1};
use flotilla_tests::Flo;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

const WORKFLOW: &str = "chaos-watch";
/// Waits that expire, so that events come without calls.
const DEFINITION: &str = "kind: Workflow
name: chaos-watch
version: \"1.0.0\"
start:
  waitForSignal: {type: never, timeoutMs: 301, onTimeout: second}
  transitions: {success: flo.Completed}
steps:
  second:
    waitForSignal: {type: never, timeoutMs: 401, onTimeout: third}
    transitions: {success: flo.Completed}
  third:
    waitForSignal: {type: never, timeoutMs: 501, onTimeout: flo.Completed}
    transitions: {success: flo.Completed}
";

/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 60;

/// Runs that are watched to their end.
#[derive(Debug, Default)]
pub(super) struct Watch {
    keys: AtomicU64,
}

impl Workload for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, _random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("watch-{}", self.keys.fetch_add(1, Ordering::Relaxed));
            let Ok(run_id) = start(session, WORKFLOW, &key).await else {
                return;
            };
            let invoked_us = session.recorder.now();
            let mut seqs = Vec::new();
            let mut is_ended = false;
            let request = v1::WatchRunRequest {
                run_id: run_id.clone(),
                ..v1::WatchRunRequest::default()
            };
            let mut updates = session.client.watch_run(request);
            loop {
                let update = tokio::select! {
                    update = updates.next() => update,
                    () = session.stop.cancelled() => None,
                };
                match update {
                    Some(Ok(WatchUpdate::Event(event))) => seqs.push(event.seq),
                    Some(Ok(update @ WatchUpdate::Status(_))) => is_ended = update.is_last(),
                    Some(Err(_)) | None => break,
                }
            }
            let output = json!({"seqs": seqs, "ended": is_ended});
            let invocation = Invocation {
                name: "watch",
                input: json!({"run": run_id}),
                invoked_us,
            };
            session.note(invocation, output);
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            let mut ends = BTreeMap::new();
            for row in await_end(session, WORKFLOW, LOOKS_MAX).await? {
                let run = run(&session.client, &row.run_id).await?;
                let status = run.status().as_str_name();
                ends.insert(row.run_id, (run.history_event_count, status.to_owned()));
            }
            Ok(json!(ends))
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let ends: BTreeMap<String, (u64, String)> = found_in(history, self.name());
        let is_stuck = |(_, status): &&(u64, String)| status != "RUN_STATUS_COMPLETED";
        let stuck = ends.values().filter(is_stuck).count();
        let mut violations = Vec::new();
        if stuck > 0 {
            let text = format!("{stuck} runs should complete by their timers, but did not");
            violations.push(Violation::new(text));
        }
        for operation in history.of(self.name()).filter(|one| one.name == "watch") {
            let run = operation.input["run"].as_str().unwrap_or_default();
            let seqs = operation.output["seqs"].clone();
            let seqs: Vec<u64> = serde_json::from_value(seqs).unwrap_or_default();
            violations.extend(numbered(&format!("the watch of {run}"), &seqs));
            let count = ends.get(run).map(|(count, _)| *count);
            let seen = u64::try_from(seqs.len()).unwrap_or(u64::MAX);
            if operation.output["ended"] == true && count.is_some_and(|count| count != seen) {
                let text = format!("the watch of {run} saw {seen} of {count:?} events");
                violations.push(Violation::new(text));
            }
        }
        violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};

    #[test]
    fn a_gap_a_repeat_and_an_end_too_soon_are_found() {
        let history = |seqs: &[u64], status: &str| History {
            operations: vec![Operation {
                name: "watch".to_owned(),
                input: json!({"run": "r"}),
                output: json!({"seqs": seqs, "ended": true}),
                ..Operation::sample("watch", Outcome::Ok)
            }],
            final_reads: BTreeMap::from([("watch".to_owned(), json!({"r": [3, status]}))]),
            ..History::default()
        };
        assert_eq!(
            Watch::default().check(&history(&[1, 2, 3], "RUN_STATUS_COMPLETED")),
            []
        );
        assert_eq!(
            Watch::default()
                .check(&history(&[1, 3, 3], "RUN_STATUS_COMPLETED"))
                .len(),
            1
        );
        assert_eq!(
            Watch::default()
                .check(&history(&[1, 2], "RUN_STATUS_COMPLETED"))
                .len(),
            1
        );
        let stuck = history(&[1, 2, 3], "RUN_STATUS_WAITING");
        assert_eq!(Watch::default().check(&stuck).len(), 1);
    }
}
