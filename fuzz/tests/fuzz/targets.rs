//! One test per target. `cargo xtask fuzz` runs them too, for longer, with the variables below.

use flotilla_fuzz::{Budget, Campaign, TARGETS, corpus, target};
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many seconds to run mutations; otherwise [`MUTATIONS_COUNT`] mutations run.
const SECONDS: &str = "FLOTILLA_FUZZ_SECONDS";
/// The seed of the mutations; otherwise [`SEED`], so that the same commit has the same verdict.
const SEED_VARIABLE: &str = "FLOTILLA_FUZZ_SEED";
/// A single file to run.
const INPUT: &str = "FLOTILLA_FUZZ_INPUT";

const SEED: u64 = 1;
const MUTATIONS_COUNT: u64 = 3_000;
/// Two hundred times what the slowest input of a corpus takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

macro_rules! tests {
    ($($test:ident = $target:literal;)*) => {
        $(#[test]
        fn $test() {
            try_target($target);
        })*

        #[test]
        fn every_target_has_a_test_a_corpus_and_a_libfuzzer_binary() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$($target),*]);
            for name in names {
                assert!(!corpus::read(name).expect("a folder").is_empty(), "{name}");
                let binary = format!("libfuzzer/targets/{name}.rs");
                let binary = std::fs::read_to_string(corpus::root().join(binary)).expect("a file");
                assert!(binary.contains(&format!("execute({name:?}, input)")), "{name}");
            }
        }
    };
}

tests! {
    cron_holds = "cron";
    definition_holds = "definition";
    entry_holds = "entry";
    expression_holds = "expression";
    identifier_holds = "identifier";
    jwt_holds = "jwt";
    message_holds = "message";
    module_holds = "module";
    path_holds = "path";
    query_holds = "query";
    record_holds = "record";
    schema_holds = "schema";
}

fn try_target(name: &str) {
    let target = target(name).expect("a target of the table");
    if let Some(path) = env::var_os(INPUT) {
        let input = std::fs::read(&path).expect("a file with an input");
        println!("{:?} by {name}", (target.check)(&input));
        return;
    }
    let campaign = Campaign {
        target: *target,
        seed: number(SEED_VARIABLE).unwrap_or(SEED),
        budget: number(SECONDS).map_or(Budget::Mutations(MUTATIONS_COUNT), |seconds| {
            Budget::Time(Duration::from_secs(seconds))
        }),
        limit: TIMEOUT,
    };
    let corpus = corpus::read(name).expect("a folder of inputs");
    let report = campaign
        .run(corpus, &journal(name))
        .expect("a folder for temporary files");
    println!(
        "{name}: {} executions from seed {}, {} accepted, {} refused",
        report.executions_count(),
        campaign.seed,
        report.accepted_count,
        report.refused_count
    );
    if let Some(failure) = &report.failure {
        let path = failure
            .keep(&corpus::root().join("artifacts"))
            .expect("a folder for artifacts");
        let path = path.display();
        panic!("{failure}\nThe input: {path}\nAgain: cargo xtask fuzz {name} --input {path}");
    }
    assert!(
        report.accepted_count > 0,
        "{name}: nothing is accepted, so little is tried"
    );
    assert!(
        report.refused_count > 0,
        "{name}: nothing is refused, so little is tried"
    );
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(
        number.unwrap_or_else(|_| panic!("expected {variable} to be a number, but it is {text:?}")),
    )
}

/// The current input; left behind by a process that dies of it.
fn journal(target: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}.input"))
}
