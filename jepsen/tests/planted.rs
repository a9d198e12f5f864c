//! Tests of the checkers: each planted bug is found.

use flotilla_jepsen::planted::PLANTED;

#[test]
fn each_planted_bug_is_found_by_the_checker_that_is_there_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // One after the other: machines are small.
    let missed = PLANTED.map(|planted| match planted.find(folder.path()) {
        Some(found) => {
            println!(
                "{} was found after {:?}: {}",
                planted.bug, found.took, found.said
            );
            None
        }
        None => Some(planted.bug),
    });
    let missed: Vec<&str> = missed.into_iter().flatten().collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
