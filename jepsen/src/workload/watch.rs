//! Runs that are watched to their end: no event is missing or duplicated.

use super::calls::{await_end, define, found_in, run, start};
use super::event_stream;
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

/// Waits that expire, so that events come without calls. The kind and the name come before it.
const DEFINITION: &str = "version: \"1.0.0\"
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

/// How runs are watched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Protocol {
    /// With the Rust client.
    Grpc,
    /// With server-sent events.
    Http,
}

/// What one watch saw of its run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The numbers of its events.
    pub(super) seqs: Vec<u64>,
    /// Whether the run has ended.
    pub(super) is_ended: bool,
    /// How often a node had no event with the number of the last one.
    pub(super) resets: u64,
}

/// Runs that are watched to their end.
#[derive(Debug)]
pub(super) struct Watch {
    protocol: Protocol,
    keys: AtomicU64,
}

impl Watch {
    pub(super) fn over(protocol: Protocol) -> Self {
        Self {
            protocol,
            keys: AtomicU64::new(0),
        }
    }

    fn workflow(&self) -> String {
        format!("chaos-{}", self.name())
    }
}

/// Watches a run with the Rust client, which continues at another node by itself.
async fn watch_over_grpc(session: &Session, run_id: &str) -> Seen {
    let mut seen = Seen::default();
    let request = v1::WatchRunRequest {
        run_id: run_id.to_owned(),
        ..v1::WatchRunRequest::default()
    };
    let mut updates = session.client.watch_run(request);
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            () = session.stop.cancelled() => None,
        };
        match update {
            Some(Ok(WatchUpdate::Event(event))) => seen.seqs.push(event.seq),
            Some(Ok(update @ WatchUpdate::Status(_))) => seen.is_ended = update.is_last(),
            Some(Err(_)) | None => return seen,
        }
    }
}

impl Workload for Watch {
    fn name(&self) -> &'static str {
        match self.protocol {
            Protocol::Grpc => "watch",
            Protocol::Http => "events",
        }
    }

    fn prepare(&self, flo: &Flo) {
        let name = self.workflow();
        define(flo, &format!("kind: Workflow\nname: {name}\n{DEFINITION}"));
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let number = self.keys.fetch_add(1, Ordering::Relaxed);
            let key = format!("{}-{number}", self.name());
            let Ok(run_id) = start(session, &self.workflow(), &key).await else {
                return;
            };
            let invoked_us = session.recorder.now();
            let Seen {
                seqs,
                is_ended,
                resets,
            } = match self.protocol {
                Protocol::Grpc => watch_over_grpc(session, &run_id).await,
                Protocol::Http => event_stream::follow(session, &run_id, random).await,
            };
            let output = json!({"seqs": seqs, "ended": is_ended, "resets": resets});
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
            for row in await_end(session, &self.workflow(), LOOKS_MAX).await? {
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
            if operation.output["resets"]
                .as_u64()
                .is_some_and(|resets| resets > 0)
            {
                let text = format!("a node does not know an event of {run} that another has sent");
                violations.push(Violation::new(text));
            }
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
        let with_resets = |seqs: &[u64], status: &str, resets: u64| History {
            operations: vec![Operation {
                name: "watch".to_owned(),
                input: json!({"run": "r"}),
                output: json!({"seqs": seqs, "ended": true, "resets": resets}),
                ..Operation::sample("watch", Outcome::Ok)
            }],
            final_reads: BTreeMap::from([("watch".to_owned(), json!({"r": [3, status]}))]),
            ..History::default()
        };
        let history = |seqs: &[u64], status: &str| with_resets(seqs, status, 0);
        assert_eq!(
            Watch::over(Protocol::Grpc).check(&history(&[1, 2, 3], "RUN_STATUS_COMPLETED")),
            []
        );
        assert_eq!(
            Watch::over(Protocol::Grpc)
                .check(&history(&[1, 3, 3], "RUN_STATUS_COMPLETED"))
                .len(),
            1
        );
        assert_eq!(
            Watch::over(Protocol::Grpc)
                .check(&history(&[1, 2], "RUN_STATUS_COMPLETED"))
                .len(),
            1
        );
        let stuck = history(&[1, 2, 3], "RUN_STATUS_WAITING");
        assert_eq!(Watch::over(Protocol::Grpc).check(&stuck).len(), 1);
        let reset = with_resets(&[1, 2, 3], "RUN_STATUS_COMPLETED", 1);
        assert_eq!(Watch::over(Protocol::Grpc).check(&reset).len(), 1);
    }
}
