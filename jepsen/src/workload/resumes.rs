//! Runs that are cancelled and resumed, including with revisions whose steps differ, and retried from one of their steps: in
//! the end, each acknowledged run completes, no step that succeeded is executed again, and output and state are as without
//! cancels.

use super::calls::{
    LOOK_PAUSE, attempts, cancel, define, events, found_in, output, read_ended, run, runs, start,
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
use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-resumes";
const DEFINITION: &str = "kind: Workflow
name: chaos-resumes
version: VERSION
state: {n: 0}
defaults: {retry: {max_attempts: 20, backoff: constant, initial_delay_ms: DELAY}}
output: {n: $.state.n, one: $.state.one, left: $.steps.left.output, each: $.steps.each.output, last: $.steps.last.output}
steps:
  - {name: one, run: \"@actions/chaos-resume\", inputMapping: {key: $.flo.run_id, name: one}, set: {one: true}}
  - name: fan
    parallel:
      merge: {n: sum}
      branches:
        left: {run: \"@actions/chaos-resume\", inputMapping: {key: $.flo.run_id, name: left}, set: {n: 1}}
        second:
          steps:
            # before-right
            - {name: right, run: \"@actions/chaos-resume\", inputMapping: {key: $.flo.run_id, name: right}, set: {n: 1}}
  # before-each
  - name: each
    forEach:
      items: [1, 2, 3]
      concurrency: 2
      merge: {n: sum}
      do:
        run: \"@actions/chaos-resume\"
        inputMapping: {key: $.flo.run_id, name: {cel: \"'item-' + string(item)\"}}
        set: {n: 1}
  # before-last
  - {name: last, run: \"@actions/chaos-resume\", inputMapping: {key: $.flo.run_id, name: last}}
";
/// The versions of the workflow, with their delays between attempts in milliseconds. Runs start with the last one.
const VERSIONS: [(&str, &str); 3] = [
    (LARGER_VERSION, "25"),
    ("\"1.0.0\"", "30"),
    ("\"2.0.0\"", "20"),
];
/// The version that has more steps.
const LARGER_VERSION: &str = "\"3.0.0\"";
/// The steps that only this version has.
const ADDED_STEPS: [&str; 3] = ["before-right", "before-each", "before-last"];
/// What each run gives.
const OUTPUT: &str = "{\"n\":5,\"one\":true,\"left\":\"left\",\"each\":[\"item-1\",\"item-2\",\"item-3\"],\"last\":\"last\"}";
/// The step with which a run begins that is not retried from another.
const FIRST_STEP: &str = "one";
const ACTIONS: &[&str] = &["chaos-resume"];
const PAUSE: Duration = Duration::from_millis(80);
/// How often a run is cancelled and resumed at most.
const CANCELS_MAX: u32 = 3;
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 120;

/// Runs that are cancelled, resumed and retried.
#[derive(Debug, Default)]
pub(super) struct Resumes {
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
    /// What has ended with `success`, each with its scope: steps outside iterations, and iterations.
    succeeded: Vec<String>,
    /// The first step that the run itself entered.
    first_step: String,
    /// The step with which it was to begin.
    begins_with: String,
}

impl Workload for Resumes {
    fn name(&self) -> &'static str {
        "resumes"
    }

    fn prepare(&self, flo: &Flo) {
        workers::register(flo, ACTIONS[0]);
        for (version, delay) in VERSIONS {
            let mut definition = DEFINITION.replace("VERSION", version);
            for step in ADDED_STEPS.iter().filter(|_| version == LARGER_VERSION) {
                let added = format!("- {{name: {step}, set: {{{step}: true}}}}");
                definition = definition.replace(&format!("# {step}"), &added);
            }
            define(flo, &definition.replace("DELAY", delay));
        }
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("resumes-{}", self.keys.fetch_add(1, Ordering::Relaxed));
            // The history has the outcome.
            if let Ok(run_id) = start(session, WORKFLOW, &key).await {
                cut(session, random, &run_id).await;
                if random.random_bool(0.5) {
                    retry(session, random, (&run_id, &key)).await;
                }
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn assist(&self, session: Session) -> BoxFuture<'static, ()> {
        workers::work_and_try(session, ACTIONS, workers::fail_first).boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            resume_all(session).await?;
            read_ended(session, WORKFLOW, 1, read).await
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let ended: Vec<Ended> = found_in(history, self.name());
        let mut begun = attempts(history, self.name(), "start");
        begun.extend(attempts(history, self.name(), "retry"));
        let found = ended
            .iter()
            .map(|run| (run.key.clone(), run.run_id.clone()));
        let mut violations = exactly_once(&begun, &found.collect::<Vec<_>>());
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
            output,
            succeeded,
            first_step,
            begins_with,
            ..
        } = self;
        let mut violations = numbered(&format!("the history of {key}"), &self.seqs);
        let mut wrong = |text: String| violations.push(Violation::new(text));
        let expected: Value = serde_json::from_str(OUTPUT).unwrap_or_default();
        let distinct: BTreeSet<&String> = succeeded.iter().collect();
        if status != "RUN_STATUS_COMPLETED" {
            wrong(format!("{key} should complete, but its status is {status}"));
        } else if output != &expected {
            wrong(format!("{key} gave {output} instead of {OUTPUT}"));
        } else if distinct.len() < succeeded.len() {
            wrong(format!(
                "{key} executed something again that had succeeded: {succeeded:?}"
            ));
        } else if first_step != begins_with {
            wrong(format!(
                "{key} began with {first_step} instead of {begins_with}"
            ));
        }
        violations
    }
}

/// Cancels a run and resumes it, several times. Other calls may have come first: the checker judges what became of the run.
async fn cut(session: &Session, random: &mut StdRng, run_id: &str) {
    for _ in 0..random.random_range(0..=CANCELS_MAX) {
        let pause = Duration::from_millis(random.random_range(0..200));
        session.rest(pause).await;
        cancel(session, run_id.to_owned(), random.random_bool(0.5)).await;
        let versions = ["", "1.0.0", "2.0.0", "3.0.0"];
        let version = versions.choose(random).copied().unwrap_or_default();
        resume(session, run_id, version).await;
    }
}

async fn resume(session: &Session, run_id: &str, version: &str) {
    let request = v1::ResumeRunRequest {
        run_id: run_id.to_owned(),
        version: version.to_owned(),
        // If a run stops at a step that only one version has, only that version can continue it.
        force: !version.is_empty(),
        ..v1::ResumeRunRequest::default()
    };
    let _ = session.client.resume_run(request).await;
}

/// Ends a run, unless it has ended, and retries it from one of the steps that it has entered.
async fn retry(session: &Session, random: &mut StdRng, (run_id, key): (&str, &str)) {
    cancel(session, run_id.to_owned(), true).await;
    let entered = events(&session.client, run_id).await;
    let mut entered = entered.map_or_else(|_| Vec::new(), |events| entered_steps(&events));
    // The run may have continued with a version that does not have them.
    entered.retain(|step| !ADDED_STEPS.contains(&step.as_str()));
    let Some(from) = entered.choose(random) else {
        return;
    };
    let key = format!("{key}-from-{from}");
    let request = v1::RetryRunRequest {
        run_id: run_id.to_owned(),
        from: from.clone(),
        force: random.random_bool(0.5),
        idempotency_key: key.clone(),
        ..v1::RetryRunRequest::default()
    };
    let call = session.client.retry_run(request);
    let show = |started: &v1::StartRunResponse| json!({"made": started.run_id});
    let _ = session.call("retry", json!({"key": key}), call, show).await;
}

/// The steps that the run itself entered, each time it did.
fn entered_steps(events: &[v1::Event]) -> Vec<String> {
    let entered = events
        .iter()
        .filter(|event| event.r#type == "step_started" && event.scope.is_empty());
    entered.map(|event| event.step.clone()).collect()
}

/// Resumes all runs that have ended without success, until all have completed.
async fn resume_all(session: &Session) -> Result<(), ClientError> {
    for _ in 0..LOOKS_MAX {
        let mut left = runs(&session.client, WORKFLOW).await?;
        left.retain(|row| row.status() != v1::RunStatus::Completed);
        if left.is_empty() {
            break;
        }
        left.retain(|row| row.completed_at_ms.is_some());
        for row in left {
            resume(session, &row.run_id, "").await;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Ok(())
}

async fn read(session: &Session, run_id: &str) -> Result<Ended, ClientError> {
    let run = run(&session.client, run_id).await?;
    let events = events(&session.client, run_id).await?;
    let succeeded = events.iter().filter(|event| {
        let attributes = String::from_utf8_lossy(&event.attributes);
        let ends = ["step_completed", "iteration_ended"].contains(&event.r#type.as_str());
        ends && attributes.contains("\"success\"")
    });
    let succeeded =
        succeeded.map(|event| format!("{}/{} {}", event.scope, event.step, event.detail));
    let first_step = entered_steps(&events).into_iter().next();
    Ok(Ended {
        key: run.idempotency_key.clone().unwrap_or_default(),
        run_id: run_id.to_owned(),
        status: run.status().as_str_name().to_owned(),
        seqs: events.iter().map(|event| event.seq).collect(),
        output: output(&run),
        succeeded: succeeded.collect(),
        first_step: first_step.unwrap_or_default(),
        begins_with: run
            .retried_from_step
            .unwrap_or_else(|| FIRST_STEP.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};
    use std::collections::BTreeMap;

    fn check(change: impl Fn(&mut Value)) -> usize {
        let operation = |name: &str, key: &str| Operation {
            name: name.to_owned(),
            input: json!({"key": key}),
            ..Operation::sample("resumes", Outcome::Ok)
        };
        let output: Value = serde_json::from_str(OUTPUT).expect("JSON");
        let run = |key: &str, step: &str| {
            json!({"key": key, "run_id": key, "status": "RUN_STATUS_COMPLETED", "seqs": [1, 2], "output": output,
                "succeeded": ["/one one", "fan/left/left left"], "first_step": step, "begins_with": step})
        };
        let mut ended = json!([run("k", "one"), run("k-from-each", "each")]);
        change(&mut ended[1]);
        let history = History {
            operations: vec![operation("start", "k"), operation("retry", "k-from-each")],
            final_reads: BTreeMap::from([("resumes".to_owned(), ended)]),
            ..History::default()
        };
        Resumes::default().check(&history).len()
    }

    #[test]
    fn a_run_that_repeats_or_loses_something_is_found() {
        assert_eq!(check(|_| {}), 0);
        let status = json!("RUN_STATUS_CANCELLED");
        assert_eq!(check(|run| run["status"] = status.clone()), 1);
        assert_eq!(check(|run| run["output"]["n"] = json!(4)), 1);
        assert_eq!(check(|run| run["first_step"] = json!("one")), 1);
        let twice = json!(["/one one", "/one one"]);
        assert_eq!(check(|run| run["succeeded"] = twice.clone()), 1);
        assert_eq!(check(|run| run["key"] = json!("k")), 2);
    }
}
