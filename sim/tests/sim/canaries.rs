//! Planted bugs: the invariants must find them.

use crate::{said, sim};

/// Seeds within which a planted bug must be found.
const SEEDS_MAX: u64 = 24;

fn expect_found(bug: &str, found: &str) {
    expect_found_in("mixed", bug, found);
}

fn expect_found_in(scenario: &str, bug: &str, found: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for seed in 1..=SEEDS_MAX {
        let output = sim(
            &format!("--seed {seed} --scenario {scenario} --seconds 10 --bug {bug}"),
            folder.path(),
        );
        let said = said(&output);
        if !output.status.success() && said.contains(found) {
            assert!(
                said.contains(&format!("again: cargo xtask sim --seed {seed}")),
                "{said}"
            );
            return;
        }
    }
    panic!("{bug} was not found in {SEEDS_MAX} seeds");
}

#[test]
fn an_acknowledgement_before_the_commit_is_found() {
    expect_found("early-acknowledgement", "expected signal");
}

#[test]
fn commands_that_lose_their_actors_are_found() {
    expect_found(
        "lost-actor",
        "expected no write with a credential that has ended",
    );
}

#[test]
fn a_lost_compensation_is_found() {
    expect_found("lost-compensation", "to undo [\"flight\"");
}

#[test]
fn an_uncalled_step_handler_is_found() {
    expect_found("lost-handler", "to call the handler of");
}

#[test]
fn a_lost_item_of_a_loop_is_found() {
    expect_found("lost-item", "to end iterations");
}

#[test]
fn a_disk_that_lies_about_its_syncs_is_found() {
    expect_found("lost-sync", "FAILED");
}

#[test]
fn a_stale_read_is_found() {
    expect_found("stale-read", "expected a read");
}

#[test]
fn a_task_that_is_given_to_two_workers_is_found() {
    expect_found("double-lease", "to be begun by its worker only");
}

#[test]
fn checks_that_no_driver_learns_of_are_found() {
    expect_found("lost-checks", "expected all work in progress to end");
}

#[test]
fn slots_that_are_not_given_back_are_found() {
    expect_found("lost-slots", "expected all work in progress to end");
}

#[test]
fn a_timer_that_never_fires_is_found() {
    expect_found("lost-timer", "expected all work in progress to end");
}

#[test]
fn a_trigger_that_is_not_woken_is_found() {
    expect_found("lost-wakeup", "expected");
}

#[test]
fn a_worker_of_another_cluster_that_is_served_is_found() {
    expect_found_in(
        "restored",
        "unchecked-call",
        "to be begun in its own cluster only",
    );
}

#[test]
fn a_member_of_another_cluster_that_is_let_in_is_found() {
    expect_found_in(
        "restored",
        "forged-sender",
        "to serve nothing, but it served",
    );
}
