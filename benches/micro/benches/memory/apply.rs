//! Commands a second that the engine applies over the store in memory, on one core.
//!
//! The target is 150,000 commands a second and more for runs of three steps (`apply/steps`). Nothing here asserts it:
//! a figure is only worth something together with the machine that it was measured on.
//!
//! - `apply`: `Engine::apply` alone, by workload and commands in an entry.
//! - `apply and write`: the same, with the write into the store and the memory that is given back.
//! - `stage`: what one command costs, by what it does in a run's life, in entries of 32 of the same kind. Those of
//!   `sweep` are runs, not commands.

use criterion::{BenchmarkId, Criterion, Throughput};
use flotilla_benches::{ENTRY_COMMANDS, Recording, Timed, Workload, group};
use std::cell::LazyCell;

/// What is measured of a workload.
struct Case {
    workload: Workload,
    stage: Option<&'static str>,
    /// Of a run, within the stage.
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

/// Commands in an entry where a workload is measured with one size only.
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
            let id = BenchmarkId::new(case.workload.name(), entry_commands);
            measure(criterion, ("apply", id), case, entry_commands);
        }
    }
    for case in &CASES {
        for entry_commands in ENTRY_COMMANDS {
            let id = BenchmarkId::new(case.workload.name(), entry_commands);
            measure(criterion, (WITH_WRITE, id), case, entry_commands);
        }
    }
    for case in &STAGES {
        let stage = case.stage.expect("each of the table has one");
        let id = BenchmarkId::new(case.workload.name(), stage);
        measure(criterion, ("stage", id), case, ENTRY_COMMANDS_USUAL);
    }
}

/// The group in which writing counts too.
const WITH_WRITE: &str = "apply and write";

fn measure(
    criterion: &mut Criterion,
    (name, id): (&str, BenchmarkId),
    case: &Case,
    entry_commands: usize,
) {
    let runs = case.workload.runs(entry_commands);
    // Only made when this measurement is among those that were asked for.
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

/// A recording that leads, replayed, to the rows that it led to.
fn checked(case: &Case, runs: usize, entry_commands: usize) -> Recording {
    let recording = case.workload.record(runs, entry_commands);
    if case.workload != Workload::Sweeps {
        let commands = recording.commands_count(case.stage);
        assert_eq!(commands, runs * case.commands, "each counts once");
    }
    recording.check_replay(&mut recording.base().clone());
    recording
}
