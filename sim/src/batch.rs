//! Many seeds, each in a separate process, as many in parallel as there are processors.

use crate::arguments::Arguments;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How often the progress is printed.
const TOLD_EVERY: u64 = 100;

/// Simulates this many seeds, starting with the plan's. Returns whether every invariant held for all of them.
pub(crate) fn simulate(arguments: &Arguments, seeds: u64) -> bool {
    let started = Instant::now();
    let (next, done, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= seeds {
                        return;
                    }
                    let (is_sound, told) = simulate_apart(arguments, arguments.plan.seed + number);
                    if !is_sound {
                        failed.fetch_add(1, Ordering::Relaxed);
                        print!("{told}");
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(TOLD_EVERY) {
                        println!(
                            "{done} seeds of {seeds} in {} s",
                            started.elapsed().as_secs()
                        );
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    let took = started.elapsed();
    println!(
        "{seeds} seeds of {} simulated in {:.1} s, {failed} failed",
        arguments.plan.scenario,
        took.as_secs_f64(),
    );
    failed == 0
}

/// Simulates one seed in a separate process. Returns whether every invariant held, and the output.
fn simulate_apart(arguments: &Arguments, seed: u64) -> (bool, String) {
    let program = std::env::current_exe();
    let output = program.and_then(|program| {
        let mut command = Command::new(program);
        command.args(arguments.words_for(seed)).output()
    });
    match output {
        Ok(Output {
            status,
            stdout,
            stderr,
        }) => {
            let mut told = String::from_utf8_lossy(&stdout).into_owned();
            if !status.success() {
                told.push_str(&String::from_utf8_lossy(&stderr));
            }
            if told.is_empty() {
                told = format!(
                    "seed {seed} FAILED: the process printed nothing and ended with {status}\n"
                );
            }
            (status.success(), told)
        }
        Err(error) => (
            false,
            format!("seed {seed} FAILED: it could not be started: {error}\n"),
        ),
    }
}
