//! Planted faults are found, kept and reported: the tests can fail.

use flotilla_fuzz::{Budget, Campaign, Report, Target, Verdict};
use std::path::Path;
use std::thread;
use std::time::Duration;

const SOUND: Target = Target {
    name: "sound",
    summary: "texts of one language",
    tokens: &["cd"],
    check: |input| {
        if input.starts_with(b"ab") {
            Verdict::Accepted
        } else {
            Verdict::Refused
        }
    },
};

fn campaign(check: fn(&[u8]) -> Verdict, seed: u64) -> Campaign {
    Campaign {
        target: Target { check, ..SOUND },
        seed,
        budget: Budget::Mutations(10_000),
        limit: Duration::from_secs(20),
    }
}

fn run(campaign: Campaign, folder: &Path) -> Report {
    let report = campaign.run(vec![b"ab".to_vec()], &folder.join("sound.input"));
    report.expect("a temporary folder")
}

/// Fails on one piece of the language in one position: three changes away from the corpus.
fn fails_on_a_third_token(input: &[u8]) -> Verdict {
    assert!(!input.starts_with(b"abcdcdcd"), "planted in {input:?}");
    (SOUND.check)(input)
}

#[test]
fn a_sound_target_has_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let report = run(campaign(SOUND.check, 1), folder.path());
    assert_eq!(report.failure, None);
    assert_eq!(report.executions_count(), 10_001);
    assert!(report.accepted_count > 1 && report.refused_count > 1);
    assert!(
        !folder.path().join("sound.input").exists(),
        "nothing is left behind"
    );
}

#[test]
fn a_planted_fault_is_found_kept_and_reported_from_any_seed() {
    for seed in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let report = run(campaign(fails_on_a_third_token, seed), folder.path());
        let failure = report.failure.expect("the planted fault");
        assert!(failure.input.starts_with(b"abcdcdcd"), "{failure}");
        let path = failure.keep(&folder.path().join("artifacts")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), failure.input);
        let told = failure.to_string();
        assert!(told.starts_with("`sound` fails on an input of "), "{told}");
        assert!(told.contains("planted in [97, 98"), "{told}");
    }
}

#[test]
fn the_same_seed_finds_the_same_input() {
    let folder = tempfile::tempdir().unwrap();
    let found = |seed| run(campaign(fails_on_a_third_token, seed), folder.path()).failure;
    assert_eq!(found(3), found(3));
}

#[test]
fn a_fault_in_the_corpus_is_found_without_a_mutation() {
    let folder = tempfile::tempdir().unwrap();
    let report = run(
        Campaign {
            budget: Budget::Mutations(0),
            ..campaign(|input| panic!("{} bytes", input.len()), 1)
        },
        folder.path(),
    );
    let failure = report.failure.expect("the planted fault");
    assert_eq!(
        (failure.input.as_slice(), failure.reason.as_str()),
        (&b"ab"[..], "2 bytes")
    );
}

#[test]
fn an_input_without_end_is_found_and_stands_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let never_returns = |input: &[u8]| {
        while input.starts_with(b"abcd") {
            thread::park();
        }
        (SOUND.check)(input)
    };
    let report = run(
        Campaign {
            limit: Duration::from_secs(2),
            ..campaign(never_returns, 1)
        },
        folder.path(),
    );
    let failure = report.failure.expect("the planted loop");
    assert!(failure.input.starts_with(b"abcd"), "{failure}");
    assert_eq!(failure.reason, "it takes longer than 2s");
    let journal = std::fs::read(folder.path().join("sound.input")).unwrap();
    assert_eq!(journal, failure.input, "what a dead process leaves behind");
}
