//! The same seed twice: the same commands, faults and entries at the same times.

use crate::{said, sim};

fn trace(words: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("trace");
    let output = sim(
        &format!("{words} --trace {}", file.display()),
        folder.path(),
    );
    assert!(output.status.success(), "{}", said(&output));
    std::fs::read_to_string(file).expect("the trace was kept")
}

/// The minimum number of lines of a meaningful trace. How much a seed does depends on the faults that
/// it draws: the simulated network may fail for most of its time.
const LINES_MIN: usize = 200;

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    for words in [
        "--seed 3 --seconds 10",
        "--seed 3 --seconds 6 --scenario snapshots",
    ] {
        let (first, second) = (trace(words), trace(words));
        let lines = first.lines().zip(second.lines());
        let differing = lines.enumerate().find(|(_, (one, other))| one != other);
        assert_eq!(differing, None, "{words}");
        assert!(first == second, "{words}: one trace is longer");
        let lines = first.lines().count();
        assert!(lines >= LINES_MIN, "{words}: {lines} lines");
    }
}

#[test]
fn another_seed_gives_another_trace() {
    assert_ne!(trace("--seed 4 --seconds 2"), trace("--seed 5 --seconds 2"));
}
