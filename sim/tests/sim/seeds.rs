//! Seeds in which all invariants must hold.

use crate::{said, sim};

fn expect_sound(words: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = sim(words, folder.path());
    if !output.status.success() {
        // A failure leaves its trace behind.
        let kept = folder.keep();
        panic!("{}\ntraces: {}", said(&output), kept.display());
    }
}

#[test]
fn sixteen_seeds_of_all_faults_break_no_invariant() {
    expect_sound("--seeds 16 --seconds 10");
}

#[test]
fn four_seeds_of_overlapping_snapshots_break_no_invariant() {
    expect_sound("--seeds 4 --seconds 6 --scenario snapshots");
}

#[test]
fn a_member_of_an_old_cluster_does_not_serve_beside_the_new_one_in_eight_seeds() {
    expect_sound("--seeds 8 --seconds 10 --scenario restored");
}

#[test]
fn eight_seeds_of_machines_that_are_far_from_each_other_break_no_invariant() {
    expect_sound("--seeds 8 --seconds 10 --scenario far");
}

/// A leader refused entries after its successor had not taken over, and the slots that they offered were lost: its
/// workers got no more tasks.
#[test]
fn slots_that_a_refused_entry_offered_are_offered_again() {
    expect_sound("--seed 10332 --seconds 20");
}

#[test]
fn eight_seeds_with_members_that_are_drained_break_no_invariant() {
    expect_sound("--seeds 8 --seconds 10 --scenario drained");
}
