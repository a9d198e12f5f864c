//! Runs with targets and locks, some of which are cancelled: no two open runs have the same target, no run starts whose
//! target is locked, and each run ends.

use super::calls::{cancel, define, entries, found_in, read_ended, run};
use super::{Session, Workload};
use crate::checker::Violation;
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

const WORKFLOW: &str = "chaos-targets";
/// Some runs are retried, so that the next attempt takes over target and lock. The lock is computed for some of them.
const DEFINITION: &str = "kind: Workflow
name: chaos-targets
version: \"1.0.0\"
locks: {cel: \"input.lock\"}
retryRun: {max_attempts: 2, initial_delay: 20ms, on_failure: true}
steps:
  - {name: hold, wait: {duration: 60ms}}
  - name: again
    switch: [{when: \"flo.run_attempt == 1 && input.fails\", goto: fall}]
    default: flo.Completed
  - {name: fall, run: \"@actions/chaos-missing\"}
";
/// The targets that the runs have.
const TARGETS: u32 = 4;
/// The codes of a start that is refused because of its target.
const REFUSALS: [&str; 2] = ["target_active", "target_locked"];
const PAUSE: Duration = Duration::from_millis(60);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 240;

/// Runs with targets and locks.
#[derive(Debug, Default)]
pub(super) struct Targets;

/// An attempt at a run: which entries of the log created and ended it.
#[derive(Debug, Deserialize, Serialize)]
struct Attempted {
    run_id: String,
    attempt: u32,
    target: String,
    input: String,
    /// The target that it locks, if it holds the lock from its start on.
    lock: Option<String>,
    /// The index of an entry, and the position in the order of starts.
    created: (u64, u64),
    ended: Option<u64>,
}

impl Workload for Targets {
    fn name(&self) -> &'static str {
        "targets"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let target = format!("target-{}", random.random_range(0..TARGETS));
            let lock = format!("^target-{}$", random.random_range(0..TARGETS));
            let (is_locking, is_computed) = (random.random_ratio(1, 3), random.random_ratio(1, 4));
            let input = json!({
                "lock": is_computed.then_some(&lock),
                "fails": random.random_ratio(1, 4),
            });
            let request = v1::StartRunRequest {
                workflow: WORKFLOW.to_owned(),
                input: input.to_string().into(),
                target: Some(target.clone()),
                locks: match is_locking && !is_computed {
                    true => vec![lock],
                    false => Vec::new(),
                },
                ..v1::StartRunRequest::default()
            };
            let input = json!({"target": target});
            let started = session.call(
                "start",
                input,
                start(session, request),
                |run_id| json!({"made": run_id}),
            );
            // The history has the outcome.
            if let Ok(Some(run_id)) = started.await
                && random.random_ratio(1, 6)
            {
                cancel(session, run_id, false).await;
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        read_ended(session, WORKFLOW, LOOKS_MAX, read).boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let mut found: Vec<Attempted> = found_in(history, self.name());
        found.sort_by_key(|one| one.created);
        let open = found.iter().filter(|one| one.ended.is_none());
        let mut violations: Vec<Violation> = open
            .map(|one| Violation::new(format!("{} has not ended", one.run_id)))
            .collect();
        violations.extend(together(&found));
        violations.extend(locked(&found));
        violations
    }
}

/// Starts a run; `None` if it is refused because of its target, which is an expected answer and not a failure.
async fn start(
    session: &Session,
    request: v1::StartRunRequest,
) -> Result<Option<String>, ClientError> {
    match session.client.start_run(request).await {
        Ok(started) => Ok(Some(started.run_id)),
        Err(error) if REFUSALS.contains(&error.code()) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Attempted {
    /// Whether it is open in an entry, and was created before `other`.
    fn is_open_at(&self, other: &Self) -> bool {
        let is_over = self.ended.is_some_and(|ended| ended <= other.created.0);
        self.created < other.created && !is_over
    }
}

/// Two runs with the same target and input that are open together.
fn together(all: &[Attempted]) -> Option<Violation> {
    all.iter().enumerate().find_map(|(position, second)| {
        let mut before = all[..position].iter();
        let is_same = |first: &&Attempted| {
            first.target == second.target && first.input == second.input && first.is_open_at(second)
        };
        let first = before.find(is_same);
        first.map(|first| {
            Violation::new(format!(
                "{} and {} have the same target and input, and are open together",
                first.run_id, second.run_id
            ))
        })
    })
}

/// A run that started while its target was locked.
fn locked(all: &[Attempted]) -> Option<Violation> {
    all.iter().find_map(|one| {
        // The next attempt at a run that started before the lock was held is not concerned.
        let is_first = one.attempt == 1;
        let locks = |holder: &&Attempted| holder.lock.as_ref() == Some(&one.target);
        let mut holders = all.iter().filter(locks);
        let holder = holders.find(|holder| is_first && holder.is_open_at(one))?;
        Some(Violation::new(format!(
            "{} started while {} locked its target",
            one.run_id, holder.run_id
        )))
    })
}

async fn read(session: &Session, run_id: &str) -> Result<Attempted, ClientError> {
    let run = run(&session.client, run_id).await?;
    let entries = entries(&session.client, run_id).await?;
    let input: Value = serde_json::from_slice(&run.input).unwrap_or_default();
    let lock = run.locks.first().filter(|_| input["lock"].is_null());
    Ok(Attempted {
        run_id: run_id.to_owned(),
        attempt: run.run_attempt,
        target: run.target.unwrap_or_default(),
        input: input.to_string(),
        lock: lock.map(|lock| lock.trim_matches(['^', '$']).to_owned()),
        created: entries.created,
        ended: entries.ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with the target `a` that was created and ended at these indexes.
    fn run(created: u64, ended: Option<u64>) -> Attempted {
        Attempted {
            run_id: format!("wfrun-{created}"),
            attempt: 1,
            target: "a".to_owned(),
            input: "{}".to_owned(),
            lock: None,
            created: (created, created),
            ended,
        }
    }

    #[test]
    fn runs_with_the_same_target_and_input_that_are_open_together_are_found() {
        assert!(together(&[run(1, Some(3)), run(3, None)]).is_none());
        assert!(together(&[run(1, Some(4)), run(3, None)]).is_some());
        let other = Attempted {
            input: "[]".to_owned(),
            ..run(3, None)
        };
        assert!(together(&[run(1, None), other]).is_none());
    }

    #[test]
    fn a_run_whose_target_was_locked_is_found() {
        let holder = || Attempted {
            target: "b".to_owned(),
            lock: Some("a".to_owned()),
            ..run(2, Some(5))
        };
        assert!(locked(&[holder(), run(3, None)]).is_some());
        assert!(locked(&[run(1, None), holder(), run(5, None)]).is_none());
        let next = Attempted {
            attempt: 2,
            ..run(3, None)
        };
        assert!(locked(&[holder(), next]).is_none());
    }
}
