//! Simulates the whole cluster in one process, on one thread, from one seed.
//!
//! Without a number of seeds it simulates one, in this process; with one, each in a separate process,
//! so that no seed can affect the next. `README.md` describes what is simulated.

mod arguments;
mod batch;
mod bug;
mod cluster;
mod disk;
mod entropy;
mod faults;
mod invariants;
mod network;
mod node;
mod outside;
mod random;
mod record;
mod scenario;
mod time;
mod world;

use arguments::{Arguments, Task};
use std::process::ExitCode;
use world::{Plan, Verdict};

/// The exit code of a usage error, as in the command line of `flo`.
const EXIT_CODE_USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_sound = match Arguments::read(&arguments) {
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(EXIT_CODE_USAGE);
        }
        Ok(arguments) => match arguments.task {
            Task::One => simulate_one(&arguments),
            Task::Many { seeds } => batch::simulate(&arguments, seeds),
        },
    };
    if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Simulates one seed, prints the result and keeps the trace if requested, or of a
/// failure. Returns whether every invariant held.
fn simulate_one(arguments: &Arguments) -> bool {
    let plan = arguments.plan;
    entropy::seed(plan.seed);
    // Threads draw entropy when they start: a new one draws from the seed.
    let simulating = std::thread::Builder::new().spawn(move || world::simulate(plan));
    let simulated = simulating.map(std::thread::JoinHandle::join);
    let Ok(Ok(verdict)) = simulated else {
        println!("seed {} FAILED: the simulation itself panicked", plan.seed);
        return false;
    };
    tell(plan, &verdict);
    let is_sound = verdict.violations.is_empty();
    if let Some(path) = arguments.trace_path(is_sound) {
        match std::fs::write(&path, &verdict.trace) {
            Ok(()) => println!("  trace: {}", path.display()),
            Err(error) => println!("  the trace could not be kept: {error}"),
        }
    }
    if !is_sound {
        println!("  again: cargo xtask sim {}", arguments.again());
    }
    is_sound
}

fn tell(plan: Plan, verdict: &Verdict) {
    println!(
        "seed {} {}: {} commands, {} entries, {} snapshots and {} installs, {} faults in {} simulated ms",
        plan.seed,
        if verdict.violations.is_empty() {
            "ok"
        } else {
            "FAILED"
        },
        verdict.operations_count,
        verdict.entries_count,
        verdict.snapshots.0,
        verdict.snapshots.1,
        verdict.faults_count,
        verdict.simulated_ms,
    );
    for violation in &verdict.violations {
        println!("  {violation}");
    }
}
