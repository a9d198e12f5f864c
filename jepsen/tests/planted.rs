//! The checkers are checked: each planted bug is found.

use flotilla_jepsen::planted::PLANTED;

#[test]
fn each_planted_bug_is_found_by_the_checker_that_is_there_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // One after the other: machines are small.
    for planted in PLANTED {
        let found = planted.find(folder.path());
        let found = found.unwrap_or_else(|| panic!("{planted:?} was not found"));
        println!(
            "{} was found after {:?}: {}",
            planted.bug, found.took, found.said
        );
    }
}
