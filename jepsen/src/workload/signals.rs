//! Signals with ids: a run receives each acknowledged signal once.

use super::calls::{attempts, define, events, pairs, runs, start};
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once};
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-signal";
const DEFINITION: &str = "kind: Workflow
name: chaos-signal
version: \"1.0.0\"
start:
  waitForSignal: {type: never, timeoutMs: 3600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";
const SIGNALS_PER_RUN: u64 = 30;
/// One in this many signals is sent again, whatever the first response was.
const REPEATED: f64 = 0.3;
const PAUSE: Duration = Duration::from_millis(30);

/// Signals with ids.
#[derive(Debug, Default)]
pub(super) struct Signals {
    signals: AtomicU64,
}

impl Workload for Signals {
    fn name(&self) -> &'static str {
        "signals"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let number = self.signals.fetch_add(1, Ordering::Relaxed);
            let run = format!("signals-{}", number / SIGNALS_PER_RUN);
            // The run may exist already: the same key gives the same run.
            if let Ok(run_id) = start(session, WORKFLOW, &run).await {
                signal(session, &run_id, number).await;
                if random.random_bool(REPEATED) {
                    signal(session, &run_id, number).await;
                }
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            let mut found = Vec::new();
            for row in runs(&session.client, WORKFLOW).await? {
                let events = events(&session.client, &row.run_id).await?;
                let received = events
                    .iter()
                    .filter(|event| event.r#type == "signal_received");
                for event in received {
                    let attributes: Value =
                        serde_json::from_slice(&event.attributes).unwrap_or_default();
                    found.push((attributes["signal_id"].clone(), row.run_id.clone()));
                }
            }
            Ok(json!(found))
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let attempts = attempts(history, self.name(), "signal");
        exactly_once(&attempts, &pairs(history.final_read(self.name())))
    }
}

async fn signal(session: &Session, run_id: &str, number: u64) {
    let key = format!("signal-{number}");
    let request = v1::SignalRunRequest {
        run_id: run_id.to_owned(),
        r#type: "ping".to_owned(),
        signal_id: key.clone(),
        ..v1::SignalRunRequest::default()
    };
    let call = session.client.signal_run(request);
    let input = json!({"key": key, "run": run_id});
    // The history has the outcome.
    let _ = session
        .call("signal", input, call, |_| json!({"made": run_id}))
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};
    use std::collections::BTreeMap;

    #[test]
    fn a_signal_received_twice_is_found() {
        let operation = Operation {
            name: "signal".to_owned(),
            input: json!({"key": "signal-1"}),
            ..Operation::sample("signals", Outcome::Ok)
        };
        let history = |found: Value| History {
            operations: vec![operation.clone()],
            final_reads: BTreeMap::from([("signals".to_owned(), found)]),
            ..History::default()
        };
        let once = history(json!([["signal-1", "r1"]]));
        assert_eq!(Signals::default().check(&once), []);
        let twice = history(json!([["signal-1", "r1"], ["signal-1", "r1"]]));
        assert_eq!(Signals::default().check(&twice).len(), 1);
    }
}
