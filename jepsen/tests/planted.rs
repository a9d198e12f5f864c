//! The checkers are checked: each planted bug is found.

use flotilla_jepsen::nemesis;
use flotilla_jepsen::run::{Plan, run};
use flotilla_jepsen::workload;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One cluster at a time: machines are small.
static ALONE: Mutex<()> = Mutex::new(());

/// How often a bug may go unfound before the checkers are worth nothing: chance has a part in it.
const TRIES: u64 = 4;

/// Expects a workload under a nemesis to find a bug, and says how long that took.
fn expect_found(bug: &str, workload: &str, nemesis: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let started = Instant::now();
    for seed in 1..=TRIES {
        let all = workload::all().into_iter();
        let report = run(Plan {
            workloads: all.filter(|one| one.name() == workload).collect(),
            nemesis: nemesis::named(nemesis).expect("a nemesis of the README"),
            seed,
            duration: Duration::from_secs(4),
            recovery_max: Duration::from_secs(60),
            bug: Some(bug.to_owned()),
            folder: folder.path().join(seed.to_string()),
            keep: false,
        });
        // Only what the workload's own checker says counts.
        let said = format!("{workload}: ");
        let found = report
            .violations
            .iter()
            .find(|one| one.0.starts_with(&said));
        if let Some(found) = found {
            let took = started.elapsed();
            println!("{bug} was found after {took:?}: {found}");
            return;
        }
    }
    panic!("expected {workload} under {nemesis} to find {bug}, but it did not in {TRIES} tries");
}

#[test]
fn a_key_acknowledged_before_it_is_committed_is_found() {
    expect_found("ack-before-commit", "register", "kill-leader");
}

#[test]
fn a_task_given_to_two_workers_is_found() {
    expect_found("double-lease", "leases", "calm");
}

#[test]
fn commands_done_again_when_they_are_sent_again_are_found() {
    expect_found("no-dedup", "starts", "calm");
}

#[test]
fn reads_that_a_node_answers_from_its_own_state_are_found() {
    expect_found("stale-read", "register", "partition-leader");
}

#[test]
fn timers_that_never_fire_are_found() {
    expect_found("lost-timer", "watch", "calm");
}
