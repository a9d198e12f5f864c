//! Runs of several steps, one of which has branches, that external workers execute and count: each
//! acknowledged run completes, each of its steps and branches once. The output of one step is
//! checked against a schema, another one waits for a time, and the last one appends a record to a stream:
//! a trigger starts another run for it: exactly one.

use super::calls::{attempts, await_end, define, events, found_in, run, runs, runs_by_key, start};
use super::workers::{self, Handled, Tried};
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once, numbered};
use crate::history::History;
use flotilla_client::v1::Event;
use flotilla_client::{ActionContext, ActionResult, ClientError, HandlerError};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-steps";
const DEFINITION: &str = "kind: Workflow
name: chaos-steps
version: \"1.0.0\"
state: {count: 0}
start:
  run: \"@actions/chaos-count\"
  set: {count: {cel: state.count + 1}, key: $.result.key}
  retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
  transitions: {success: second, failure: flo.Failed}
steps:
  second:
    run: \"@actions/chaos-count\"
    inputMapping: {key: $.state.key}
    set: {count: {cel: state.count + 1}}
    output: {extract: {key: $.result.key}, schema: {type: object, required: [key]}}
    retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
    transitions: {success: third, failure: flo.Failed}
  third:
    parallel:
      branches:
        left:
          run: \"@actions/chaos-count\"
          inputMapping: {key: $.input.key}
          retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
        line:
          - name: right
            run: \"@actions/chaos-count\"
            inputMapping: {key: $.input.key}
            retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
          - name: tail
            run: \"@actions/chaos-count\"
            set: {count: {cel: state.count + 1}}
            inputMapping: {key: $.steps.right.output.key}
            retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}
    transitions: {success: which, failure: flo.Failed}
  which:
    switch:
      - {when: steps.tail.output.key != input.key || state.count != 3, goto: flo.Failed}
      - {when: 'steps.second.outcome == \"success\" && input.key.startsWith(\"steps-\")', goto: skipped}
    default: flo.Failed
  skipped:
    run: \"@actions/chaos-count\"
    skipIf: has(input.key)
    transitions: {success: flo.Failed, skipped: pause, failure: flo.Failed}
  pause:
    wait: {duration: 30ms}
    transitions: {success: tell}
  tell:
    emit: {stream: chaos-steps-ended, key: $.input.key, payload: {key: $.input.key}}
    transitions: {success: flo.Completed}
";
/// The workflow of the runs that the trigger starts.
const FOLLOWING: &str = "chaos-following";
const FOLLOWING_DEFINITION: &str = "kind: Workflow
name: chaos-following
version: \"1.0.0\"
trigger: {stream: chaos-steps-ended}
steps:
  - {name: note, set: {noted: true}}
";
/// The steps that a run completes, sorted.
const STEPS: [&str; 10] = [
    "left", "pause", "right", "second", "skipped", "start", "tail", "tell", "third", "which",
];
/// The steps that no worker executes.
const OF_ENGINE: [&str; 5] = ["pause", "skipped", "tell", "third", "which"];
/// The scopes that a run opens and ends, sorted.
const SCOPES: [&str; 2] = ["third/left", "third/line"];
const ACTIONS: &[&str] = &["chaos-count"];
const PAUSE: Duration = Duration::from_millis(120);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 120;

/// Runs of several steps.
#[derive(Debug, Default)]
pub(super) struct Steps {
    keys: AtomicU64,
}

/// The final state of a run.
#[derive(Debug, Deserialize, Serialize)]
struct Ended {
    key: String,
    run_id: String,
    status: String,
    seqs: Vec<u64>,
    /// The names of the completed steps, sorted.
    steps_completed: Vec<String>,
    /// The paths of the scopes that started, sorted.
    scopes_started: Vec<String>,
    /// The paths of the scopes that ended, sorted.
    scopes_ended: Vec<String>,
    /// How many runs its record has started.
    followed_by: usize,
}

impl Workload for Steps {
    fn name(&self) -> &'static str {
        "steps"
    }

    fn prepare(&self, flo: &Flo) {
        workers::register(flo, ACTIONS[0]);
        define(flo, DEFINITION);
        define(flo, FOLLOWING_DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, _random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("steps-{}", self.keys.fetch_add(1, Ordering::Relaxed));
            // The history has the outcome.
            let _ = start(session, WORKFLOW, &key).await;
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn assist(&self, session: Session) -> BoxFuture<'static, ()> {
        workers::work_and_try(session, ACTIONS, count).boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            let rows = await_end(session, WORKFLOW, LOOKS_MAX).await?;
            await_following(session, rows.len()).await?;
            let following = runs_by_key(&session.client, FOLLOWING).await?;
            let following: Vec<(String, String)> =
                serde_json::from_value(following).unwrap_or_default();
            let mut ended = Vec::new();
            for row in rows {
                let mut run = read(session, &row.run_id).await?;
                let of_run = following.iter().filter(|(key, _)| *key == run.key);
                run.followed_by = of_run.count();
                ended.push(run);
            }
            Ok(json!(ended))
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let ended: Vec<Ended> = found_in(history, self.name());
        let attempts = attempts(history, self.name(), "start");
        let found: Vec<(String, String)> = ended
            .iter()
            .map(|run| (run.key.clone(), run.run_id.clone()))
            .collect();
        let mut violations = exactly_once(&attempts, &found);
        let executions = workers::executions(history, self.name(), "step");
        for run in &ended {
            violations.extend(run.check(&executions));
        }
        violations
    }
}

impl Ended {
    fn check(&self, executions: &BTreeMap<(String, String), u64>) -> Vec<Violation> {
        let Self { key, status, .. } = self;
        let mut violations = numbered(&format!("the history of {key}"), &self.seqs);
        let mut wrong = |text: String| violations.push(Violation::new(text));
        if status != "RUN_STATUS_COMPLETED" {
            wrong(format!("{key} should complete, but its status is {status}"));
        } else if self.steps_completed != STEPS {
            let steps = &self.steps_completed;
            wrong(format!(
                "{key} completed the steps {steps:?} instead of {STEPS:?}"
            ));
        } else if self.scopes_started != SCOPES || self.scopes_ended != SCOPES {
            let (started, ended) = (&self.scopes_started, &self.scopes_ended);
            wrong(format!(
                "{key} started the scopes {started:?} and ended {ended:?} instead of {SCOPES:?}"
            ));
        }
        if self.followed_by != 1 {
            let followed_by = self.followed_by;
            wrong(format!(
                "the record of {key} started {followed_by} runs instead of one"
            ));
        }
        for step in &self.steps_completed {
            let is_executed = executions.contains_key(&(key.clone(), step.clone()));
            match (is_executed, OF_ENGINE.contains(&step.as_str())) {
                (true, false) | (false, true) => {}
                (false, false) => wrong(format!(
                    "{step} of {key} completed, but no worker executed it"
                )),
                (true, true) => wrong(format!("a worker executed {step} of {key}")),
            }
        }
        violations
    }
}

/// Waits for the runs that the records of `count` runs start.
async fn await_following(session: &Session, count: usize) -> Result<(), ClientError> {
    for _ in 0..LOOKS_MAX {
        if runs(&session.client, FOLLOWING).await?.len() >= count {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    await_end(session, FOLLOWING, LOOKS_MAX).await?;
    Ok(())
}

/// Fails at first, so that retries happen, then counts.
async fn count(
    session: Session,
    worker: String,
    tried: Arc<Tried>,
    context: ActionContext,
) -> Handled {
    #[derive(Deserialize)]
    struct Input {
        key: String,
    }
    let Input { key } = context.json()?;
    let invoked_us = session.recorder.now();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let step = context.step().unwrap_or_default();
    let is_first = tried.is_first(&key, step);
    if is_first && step != "second" {
        return Err(HandlerError::retry("the first attempt fails"));
    }
    let input = json!({"key": key, "step": step, "task": context.task_id(), "worker": worker});
    workers::note_execution(&session, input, invoked_us);
    Ok(ActionResult::success(json!({"key": key})))
}

async fn read(session: &Session, run_id: &str) -> Result<Ended, ClientError> {
    let run = run(&session.client, run_id).await?;
    let events = events(&session.client, run_id).await?;
    let input: Value = serde_json::from_slice(&run.input).unwrap_or_default();
    let of_type = |wanted: &str, name: fn(&Event) -> &String| {
        let events = events.iter().filter(|event| event.r#type == wanted);
        let mut names: Vec<String> = events.map(|event| name(event).clone()).collect();
        names.sort_unstable();
        names
    };
    Ok(Ended {
        key: input["key"].as_str().unwrap_or_default().to_owned(),
        run_id: run_id.to_owned(),
        status: run.status().as_str_name().to_owned(),
        seqs: events.iter().map(|event| event.seq).collect(),
        steps_completed: of_type("step_completed", |event| &event.step),
        scopes_started: of_type("scope_started", |event| &event.scope),
        scopes_ended: of_type("scope_ended", |event| &event.scope),
        followed_by: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};

    fn history(status: &str, steps_completed: &[&str]) -> History {
        let operation = |name: &str, input| Operation {
            name: name.to_owned(),
            input,
            ..Operation::sample("steps", Outcome::Ok)
        };
        let executed = STEPS.iter().filter(|step| !OF_ENGINE.contains(step));
        let executed = executed.map(|step| operation("execute", json!({"key": "k", "step": step})));
        let ended = json!([{"key": "k", "run_id": "r", "status": status, "seqs": [1, 2],
            "steps_completed": steps_completed, "scopes_started": SCOPES, "scopes_ended": SCOPES,
            "followed_by": 1}]);
        let mut operations = vec![operation("start", json!({"key": "k"}))];
        operations.extend(executed);
        History {
            operations,
            final_reads: BTreeMap::from([("steps".to_owned(), ended)]),
            ..History::default()
        }
    }

    #[test]
    fn a_run_that_stands_still_or_repeats_a_step_is_found() {
        let sound = history("RUN_STATUS_COMPLETED", &STEPS);
        assert_eq!(Steps::default().check(&sound), []);
        let stuck = history("RUN_STATUS_RUNNING", &["start"]);
        assert_eq!(Steps::default().check(&stuck).len(), 1);
        let twice = history(
            "RUN_STATUS_COMPLETED",
            &[
                "left", "pause", "right", "second", "second", "skipped", "start", "tail", "tell",
                "third", "which",
            ],
        );
        assert_eq!(Steps::default().check(&twice).len(), 1);
        let mut lost = history("RUN_STATUS_COMPLETED", &STEPS);
        let ended = lost.final_reads.get_mut("steps").expect("the reads");
        ended[0]["scopes_ended"] = json!(["third/left"]);
        assert_eq!(Steps::default().check(&lost).len(), 1);
        let mut unheard = history("RUN_STATUS_COMPLETED", &STEPS);
        let ended = unheard.final_reads.get_mut("steps").expect("the reads");
        ended[0]["followed_by"] = json!(2);
        assert_eq!(Steps::default().check(&unheard).len(), 1);
        let mut executed = history("RUN_STATUS_COMPLETED", &STEPS);
        // Instead of another step.
        executed.operations[1].input = json!({"key": "k", "step": "skipped"});
        assert_eq!(Steps::default().check(&executed).len(), 2);
    }
}
