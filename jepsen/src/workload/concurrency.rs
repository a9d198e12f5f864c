//! Runs that hold a concurrency key, some of which are cancelled: never more than the limit hold it at the same time, they
//! begin in the order in which they were started, and each of them ends.

use super::calls::{attempts, cancel, define, entries, found_in, read_ended, run, start};
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once};
use crate::history::History;
use flotilla_client::ClientError;
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-concurrency";
/// Some attempts fail, so that the next one takes the key over.
const DEFINITION: &str = "kind: Workflow
name: chaos-concurrency
version: \"1.0.0\"
concurrency: {key: all, limit: 2}
retryRun: {max_attempts: 3, initial_delay: 20ms, on_failure: true}
steps:
  - {name: hold, wait: {duration: 40ms}}
  - name: again
    switch: [{when: \"flo.run_attempt == 1 && input.key.endsWith('7')\", goto: fall}]
    default: flo.Completed
  - {name: fall, run: \"@actions/chaos-missing\"}
";
/// Runs that hold the key at the same time, at most.
const LIMIT: usize = 2;
const PAUSE: Duration = Duration::from_millis(100);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 240;

/// Runs with a concurrency limit.
#[derive(Debug, Default)]
pub(super) struct Concurrency {
    keys: AtomicU64,
}

/// An attempt at a run: which entries of the log created it, began it and ended it.
#[derive(Debug, Deserialize, Serialize)]
struct Attempted {
    key: String,
    run_id: String,
    attempt: u32,
    /// The index of an entry, and the position in the order of starts.
    created: (u64, u64),
    began: Option<u64>,
    ended: Option<u64>,
}

impl Workload for Concurrency {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("concurrency-{}", self.keys.fetch_add(1, Ordering::Relaxed));
            let is_cancelled = random.random_ratio(1, 4);
            // The history has the outcome.
            if let Ok(run_id) = start(session, WORKFLOW, &key).await
                && is_cancelled
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
        let found: Vec<Attempted> = found_in(history, self.name());
        let firsts = found.iter().filter(|one| one.attempt == 1);
        let made: Vec<_> = firsts
            .map(|one| (one.key.clone(), one.run_id.clone()))
            .collect();
        let mut violations = exactly_once(&attempts(history, self.name(), "start"), &made);
        let open = found.iter().filter(|one| one.ended.is_none());
        violations.extend(open.map(|one| Violation::new(format!("{} has not ended", one.key))));
        violations.extend(exceeded(&found));
        violations.extend(overtaken(&found));
        violations
    }
}

/// More runs than the limit hold the key. A run that ends in an entry no longer holds it when another one begins there, and
/// a run whose next attempt has begun holds it through that one.
fn exceeded(all: &[Attempted]) -> Option<Violation> {
    let mut changes: Vec<(u64, i32)> = Vec::new();
    for one in all {
        if let Some(began) = one.began {
            changes.push((began, 1));
            changes.extend(one.ended.map(|ended| (ended, -1)));
        }
    }
    // Of the changes of an entry, the ends come first.
    changes.sort_unstable();
    let mut holders = 0;
    changes.into_iter().find_map(|(index, change)| {
        holders += change;
        let limit = i32::try_from(LIMIT).expect("a small number");
        (holders > limit)
            .then(|| Violation::new(format!("{holders} runs hold the key at index {index}")))
    })
}

/// A run that began before another one that was started earlier, and that began, too.
fn overtaken(all: &[Attempted]) -> Option<Violation> {
    let firsts = all.iter().filter(|one| one.attempt == 1);
    let mut begun: Vec<&Attempted> = firsts.filter(|one| one.began.is_some()).collect();
    begun.sort_by_key(|one| one.created);
    let mut pairs = begun.windows(2);
    let overtaken = pairs.find(|pair| pair[0].began > pair[1].began)?;
    Some(Violation::new(format!(
        "{} began before {}, which was started earlier",
        overtaken[1].key, overtaken[0].key
    )))
}

async fn read(session: &Session, run_id: &str) -> Result<Attempted, ClientError> {
    let run = run(&session.client, run_id).await?;
    let entries = entries(&session.client, run_id).await?;
    let input: Value = serde_json::from_slice(&run.input).unwrap_or_default();
    Ok(Attempted {
        key: input["key"].as_str().unwrap_or_default().to_owned(),
        run_id: run_id.to_owned(),
        attempt: run.run_attempt,
        created: entries.created,
        began: entries.began,
        ended: entries.ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was created, began and ended at these indexes.
    fn run(created: u64, began: Option<u64>, ended: Option<u64>) -> Attempted {
        Attempted {
            key: format!("k{created}"),
            run_id: format!("wfrun-{created}"),
            attempt: 1,
            created: (created, created),
            began,
            ended,
        }
    }

    #[test]
    fn a_key_that_too_many_runs_hold_is_found() {
        let all = |third| {
            [
                run(1, Some(1), Some(5)),
                run(2, Some(2), Some(6)),
                run(3, Some(third), Some(9)),
                run(4, None, Some(4)),
            ]
        };
        assert_eq!(exceeded(&all(5)), None);
        assert!(exceeded(&all(4)).is_some());
        assert!(exceeded(&[run(1, Some(1), None), run(2, Some(2), None)]).is_none());
    }

    #[test]
    fn a_run_that_overtakes_another_one_is_found() {
        let all = |second, third| {
            [
                run(1, Some(1), Some(5)),
                run(3, third, Some(9)),
                run(2, second, Some(6)),
            ]
        };
        assert_eq!(overtaken(&all(Some(2), Some(2))), None);
        assert_eq!(overtaken(&all(None, Some(2))), None);
        assert!(overtaken(&all(Some(4), Some(3))).is_some());
    }
}
