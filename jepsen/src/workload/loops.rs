//! Runs with loops and a block that is retried, whose steps external workers execute: each acknowledged run completes,
//! each of its items once, with the state as it is without faults. The first attempt at the block fails, and leaves
//! nothing in the state.

use super::calls::{attempts, define, events, found_in, output, read_ended, run, start};
use super::workers;
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once, numbered};
use crate::history::History;
use flotilla_client::ClientError;
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-loops";
const DEFINITION: &str = "kind: Workflow
name: chaos-loops
version: \"1.0.0\"
state: {total: 0, tries: 0}
output: {each: $.steps.each.output, loop: $.steps.loop.output, total: $.state.total, tries: $.state.tries}
steps:
  - name: each
    forEach:
      items: [1, 2, 3, 4]
      concurrency: 2
      merge: {total: sum}
      do:
        - name: visit
          run: \"@actions/chaos-item\"
          inputMapping: {key: $.input.key, name: {cel: \"'item-' + string(item)\"}}
          retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
          set: {total: $.item}
  - name: loop
    forEach:
      items: $.steps.each.output
      concurrency: 1
      collect: none
      do: {set: {total: {cel: state.total + index}}}
  - name: body
    block:
      - {name: note, set: {tries: {cel: state.tries + 1}}}
      - {name: fall, run: \"@actions/chaos-item\", inputMapping: {key: $.input.key, name: body}}
    retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
";
/// What each run gives.
const OUTPUT: &str = "{\"each\":[\"item-1\",\"item-2\",\"item-3\",\"item-4\"],\
                      \"loop\":{\"total\":4,\"succeeded\":4,\"failed\":0},\"total\":16,\"tries\":1}";
/// The iterations that end in each run, sorted.
const ITERATIONS: [&str; 8] = [
    "each[0]", "each[1]", "each[2]", "each[3]", "loop[0]", "loop[1]", "loop[2]", "loop[3]",
];
const ACTIONS: &[&str] = &["chaos-item"];
const PAUSE: Duration = Duration::from_millis(120);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 120;

/// Runs with loops and a block.
#[derive(Debug, Default)]
pub(super) struct Loops {
    keys: AtomicU64,
}

/// The final state of a run.
#[derive(Debug, Deserialize, Serialize)]
struct Ended {
    key: String,
    run_id: String,
    status: String,
    seqs: Vec<u64>,
    output: Value,
    /// The iterations that ended with `success`, sorted.
    iterations: Vec<String>,
    /// How often the block was retried.
    retries: usize,
}

impl Workload for Loops {
    fn name(&self) -> &'static str {
        "loops"
    }

    fn prepare(&self, flo: &Flo) {
        workers::register(flo, ACTIONS[0]);
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, _random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("loops-{}", self.keys.fetch_add(1, Ordering::Relaxed));
            // The history has the outcome.
            let _ = start(session, WORKFLOW, &key).await;
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
        let attempts = attempts(history, self.name(), "start");
        let found = ended
            .iter()
            .map(|run| (run.key.clone(), run.run_id.clone()));
        let mut violations = exactly_once(&attempts, &found.collect::<Vec<_>>());
        for run in &ended {
            violations.extend(run.check());
        }
        violations
    }
}

impl Ended {
    fn check(&self) -> Vec<Violation> {
        let Self {
            key,
            status,
            iterations,
            output,
            ..
        } = self;
        let mut violations = numbered(&format!("the history of {key}"), &self.seqs);
        let mut wrong = |text: String| violations.push(Violation::new(text));
        let expected: Value = serde_json::from_str(OUTPUT).unwrap_or_default();
        if status != "RUN_STATUS_COMPLETED" {
            wrong(format!("{key} should complete, but its status is {status}"));
        } else if iterations != &ITERATIONS {
            wrong(format!(
                "{key} ended the iterations {iterations:?} instead of {ITERATIONS:?}"
            ));
        } else if output != &expected {
            wrong(format!("{key} gave {output} instead of {OUTPUT}"));
        } else if self.retries == 0 {
            wrong(format!(
                "{key} completed, although the first attempt at its block fails"
            ));
        }
        violations
    }
}

async fn read(session: &Session, run_id: &str) -> Result<Ended, ClientError> {
    let run = run(&session.client, run_id).await?;
    let events = events(&session.client, run_id).await?;
    let input: Value = serde_json::from_slice(&run.input).unwrap_or_default();
    let ended = events.iter().filter(|event| {
        let attributes = String::from_utf8_lossy(&event.attributes);
        event.r#type == "iteration_ended" && attributes.contains("\"success\"")
    });
    let mut iterations: Vec<String> = ended
        .map(|event| format!("{}[{}]", event.step, event.detail))
        .collect();
    iterations.sort_unstable();
    let retries = events
        .iter()
        .filter(|event| event.r#type == "step_retry" && event.step == "body");
    Ok(Ended {
        key: input["key"].as_str().unwrap_or_default().to_owned(),
        run_id: run_id.to_owned(),
        status: run.status().as_str_name().to_owned(),
        seqs: events.iter().map(|event| event.seq).collect(),
        output: output(&run),
        iterations,
        retries: retries.count(),
    })
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
            ..Operation::sample("loops", Outcome::Ok)
        };
        let output: Value = serde_json::from_str(OUTPUT).expect("JSON");
        let mut ended = json!([{"key": "k", "run_id": "r", "status": "RUN_STATUS_COMPLETED",
            "seqs": [1, 2], "output": output, "iterations": ITERATIONS, "retries": 1}]);
        change(&mut ended[0]);
        let history = History {
            operations: vec![start],
            final_reads: BTreeMap::from([("loops".to_owned(), ended)]),
            ..History::default()
        };
        Loops::default().check(&history).len()
    }

    #[test]
    fn a_lost_or_repeated_item_and_a_wrong_state_are_found() {
        assert_eq!(check(|_| {}), 0);
        assert_eq!(check(|run| run["status"] = json!("RUN_STATUS_RUNNING")), 1);
        assert_eq!(check(|run| run["iterations"] = json!(ITERATIONS[1..])), 1);
        let twice = [&["each[0]"][..], &ITERATIONS].concat();
        assert_eq!(check(|run| run["iterations"] = json!(twice)), 1);
        assert_eq!(check(|run| run["output"]["tries"] = json!(2)), 1);
        assert_eq!(check(|run| run["output"]["total"] = json!(6)), 1);
        assert_eq!(check(|run| run["retries"] = json!(0)), 1);
    }
}
