//! Starts with idempotency keys: each acknowledged key is one run, and no key has two runs.

use super::calls::{attempt, define, pairs, runs_by_key, start};
use super::{Session, Workload};
use crate::checker::{Attempt, Violation, exactly_once};
use crate::history::History;
use flotilla_client::ClientError;
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-start";
const DEFINITION: &str = "kind: Workflow
name: chaos-start
version: \"1.0.0\"
start:
  waitForSignal: {type: never, timeoutMs: 3600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";
/// One in this many starts repeats an earlier key.
const REPEATED: f64 = 0.3;
const PAUSE: Duration = Duration::from_millis(30);

/// Starts with idempotency keys.
#[derive(Debug, Default)]
pub(super) struct Starts {
    keys: AtomicU64,
}

impl Workload for Starts {
    fn name(&self) -> &'static str {
        "starts"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let last = self.keys.load(Ordering::Relaxed);
            let number = match last > 0 && random.random_bool(REPEATED) {
                true => random.random_range(last.saturating_sub(20)..last),
                false => self.keys.fetch_add(1, Ordering::Relaxed),
            };
            let key = format!("key-{number}");
            // If a client fails, the next one may use the same key.
            let _ = start(session, WORKFLOW, &key).await;
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        runs_by_key(&session.client, WORKFLOW).boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let attempts: Vec<Attempt> = history.of(self.name()).map(attempt).collect();
        exactly_once(&attempts, &pairs(history.final_read(self.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};
    use serde_json::json;
    use std::collections::BTreeMap;

    fn history(outcome: Outcome, output: Value, found: Value) -> History {
        let operation = Operation {
            input: json!({"key": "key-1"}),
            output,
            ..Operation::sample("starts", outcome)
        };
        History {
            operations: vec![operation],
            final_reads: BTreeMap::from([("starts".to_owned(), found)]),
            ..History::default()
        }
    }

    #[test]
    fn a_run_that_is_lost_or_double_is_found() {
        let made = json!({"made": "r1"});
        let there = history(Outcome::Ok, made.clone(), json!([["key-1", "r1"]]));
        assert_eq!(Starts::default().check(&there), []);
        let lost = history(Outcome::Ok, made.clone(), json!([]));
        assert!(!Starts::default().check(&lost).is_empty());
        let double = json!([["key-1", "r1"], ["key-1", "r2"]]);
        assert!(
            !Starts::default()
                .check(&history(Outcome::Ok, made, double))
                .is_empty()
        );
        let unknown = history(Outcome::Unknown, Value::Null, json!([]));
        assert_eq!(Starts::default().check(&unknown), []);
    }
}
