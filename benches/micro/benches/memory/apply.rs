//! Commands per second that the engine applies over the in-memory store, on one core.
//!
//! The target is at least 150,000 commands a second for runs of three steps (`apply/steps`). Nothing here asserts it:
//! a figure means something only together with the machine on which it was measured.
//!
//! - `apply`: `Engine::apply` alone, by workload and commands per entry.
//! - `apply and write`: the same, plus the write to the store and the release of memory.
//! - `stage`: the cost of one command, by its stage in a run's life, in entries of 32 commands of the same kind. For
//!   `sweep` the unit is a run, not a command.

use criterion::{BenchmarkId, Criterion, Throughput};
use flotilla_benches::{ENTRY_COMMANDS, Recording, Timed, Workload, group};
use std::cell::LazyCell;

/// What is measured about a workload.
struct Case {
    workload: Workload,
    stage: Option<&'static str>,
    /// The stage of a run that is measured.
    commands: usize,
}

const CASES: [Case; 4] = [
    case(Workload::Steps, None, 4),
    case(Workload::NoOps, None, 1),
    case(Workload::Signals, Some("signal"), 1),
    case(Workload::Timers, Some("fire"), 1),
];

const STAGES: [Case; 9] = [
    case(Workload::StepsInTurn, Some("start"), 1),
    case(Workload::StepsInTurn, Some("first"), 1),
    case(Workload::StepsInTurn, Some("second"), 1),
    case(Workload::StepsInTurn, Some("third"), 1),
    case(Workload::Sweeps, Some("sweep"), 1),
    case(Workload::NoOps, Some("start"), 1),
    case(Workload::Signals, Some("park"), 1),
    case(Workload::Signals, Some("signal"), 1),
    case(Workload::Timers, Some("fire"), 1),
];

/// The commands per entry of workloads that are measured with one size only.
const ENTRY_COMMANDS_USUAL: usize = 32;

const fn case(workload: Workload, stage: Option<&'static str>, commands: usize) -> Case {
    Case {
        workload,
        stage,
        commands,
    }
}

pub(crate) fn bench(criterion: &mut Criterion) {
    for case in &CASES {
        for entry_commands in ENTRY_COMMANDS {
            measure(criterion, "apply", case, entry_commands);
        }
    }
    for case in &CASES {
        for entry_commands in ENTRY_COMMANDS {
            measure(criterion, WITH_WRITE, case, entry_commands);
        }
    }
    for case in &STAGES {
        measure(criterion, BY_STAGE, case, ENTRY_COMMANDS_USUAL);
    }
}

/// The group that includes writing.
const WITH_WRITE: &str = "apply and write";
/// The group whose parameter is a stage.
const BY_STAGE: &str = "stage";

fn measure(criterion: &mut Criterion, name: &str, case: &Case, entry_commands: usize) {
    let workload = case.workload.name();
    let id = match case.stage.filter(|_| name == BY_STAGE) {
        Some(stage) => BenchmarkId::new(workload, stage),
        None => BenchmarkId::new(workload, entry_commands),
    };
    let runs = case.workload.runs(entry_commands);
    // Made only if this measurement was selected.
    let recording = LazyCell::new(|| checked(case, runs, entry_commands));
    let timed = Timed {
        stage: case.stage,
        is_write_included: name == WITH_WRITE,
    };
    let mut group = group(criterion, name);
    let commands = u64::try_from(runs * case.commands).expect("a recording is small");
    group.throughput(Throughput::Elements(commands));
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|rounds| {
            let replay = |_| recording.replay(&mut recording.base().clone(), timed);
            (0..rounds).map(replay).sum()
        });
    });
    group.finish();
}

/// A recording that was checked: its replay gives the recorded rows.
fn checked(case: &Case, runs: usize, entry_commands: usize) -> Recording {
    let recording = case.workload.record(runs, entry_commands);
    if case.workload != Workload::Sweeps {
        let commands = recording.commands_count(case.stage);
        assert_eq!(commands, runs * case.commands, "each counts once");
    }
    recording.check_replay(&mut recording.base().clone());
    recording
}
