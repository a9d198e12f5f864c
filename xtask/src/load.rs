//! A load that is run to its end, and the report that it prints.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Process;
use crate::sandbox::Sandbox;

/// How long a load may take beyond its time, to connect and to wait for its last answers.
const SLACK: Duration = Duration::from_secs(90);

/// Runs a load that is to last so long, and reads the last report that it printed.
///
/// # Errors
/// If it fails, takes far too long or reports nothing; if the work is interrupted.
pub(crate) fn measure(
    sandbox: &Sandbox,
    name: &str,
    command: &mut Command,
    length: Duration,
) -> Result<Value> {
    measure_beside(sandbox, (name, command), length, || Ok(()))
}

/// The same, while something else is done again and again.
///
/// # Errors
/// As [`measure`], or what the other returns.
pub(crate) fn measure_beside(
    sandbox: &Sandbox,
    (name, command): (&str, &mut Command),
    length: Duration,
    beside: impl FnMut() -> Result<()>,
) -> Result<Value> {
    let log = sandbox.log(name);
    // What an earlier one said is not to be taken for this one's.
    let _ = fs::remove_file(&log);
    let mut process = Process::start(name, command, &log)?;
    process.wait_for_end_beside(length + SLACK, &sandbox.interrupt, beside)?;
    // A Ctrl-C at the terminal ends a load early, but well.
    sandbox.interrupt.check()?;
    last_report(&fs::read_to_string(&log)?).with_context(|| format!("the load {name}"))
}

/// Runs a program of ours, which is to last so long, to its end.
///
/// # Errors
/// If it fails, or takes far too long.
pub(crate) fn run(
    sandbox: &Sandbox,
    name: &str,
    command: &mut Command,
    length: Duration,
) -> Result<()> {
    let mut process = Process::start(name, command, &sandbox.log(name))?;
    process.wait_for_end(length + SLACK, &sandbox.interrupt)
}

/// The last report in the output of `flo bench` or `flotilla-peers`.
///
/// # Errors
/// If there is none.
fn last_report(output: &str) -> Result<Value> {
    let objects = output
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut reports = objects.filter(|object| object["runs_per_s"].is_number());
    reports
        .next()
        .context("expected a report, but there is none in the output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_counts_and_other_lines_do_not() {
        let output = "\
64 clients for 10 s
{\"runs_per_s\":1}
{\"runs_per_s\":1163.25}
{\"error\":{\"code\":\"timeout\"}}
";
        let report = last_report(output).unwrap();
        assert_eq!(report["runs_per_s"], 1163.25);
    }

    #[test]
    fn an_output_without_a_report_is_no_success() {
        assert!(last_report("").is_err());
        assert!(last_report("{\"error\":{\"code\":\"timeout\"}}").is_err());
    }
}
