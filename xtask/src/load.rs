//! Runs a load to its end and reads its report.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Process;
use crate::sandbox::Sandbox;

/// How much longer than its duration a load may take, to connect and to wait for its last responses.
const SLACK: Duration = Duration::from_secs(90);

/// Runs a load of this duration, and reads the last report that it printed.
///
/// # Errors
/// If it fails, takes too long or prints no report; if the work is interrupted.
pub(crate) fn measure(
    sandbox: &Sandbox,
    name: &str,
    command: &mut Command,
    length: Duration,
) -> Result<Value> {
    let program = Program { name, command };
    measure_beside(sandbox, program, length, || Ok(()))
}

/// A program that puts a load on a cluster and prints reports.
pub(crate) struct Program<'a> {
    /// Names its log.
    pub(crate) name: &'a str,
    pub(crate) command: &'a mut Command,
}

/// The same, while a function is called repeatedly.
///
/// # Errors
/// As [`measure`], or what the function returns.
pub(crate) fn measure_beside(
    sandbox: &Sandbox,
    program: Program<'_>,
    length: Duration,
    beside: impl FnMut() -> Result<()>,
) -> Result<Value> {
    let Program { name, command } = program;
    let log = sandbox.log(name);
    // Output of an earlier load must not count for this one.
    let _ = fs::remove_file(&log);
    let mut process = Process::start(name, command, &log)?;
    process.wait_for_end_beside(length + SLACK, &sandbox.interrupt, beside)?;
    // A Ctrl-C at the terminal ends a load early, but successfully.
    sandbox.interrupt.check()?;
    last_report(&fs::read_to_string(&log)?).with_context(|| format!("the load {name}"))
}

/// Runs one of our programs of this duration to its end.
///
/// # Errors
/// If it fails, or takes too long.
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
/// If there is no report.
fn last_report(output: &str) -> Result<Value> {
    let objects = output
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut reports = objects.filter(|object| object["runs_per_s"].is_number());
    reports
        .next()
        .context("expected a report, but the output contains no report")
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
    fn an_output_without_a_report_is_an_error() {
        assert!(last_report("").is_err());
        assert!(last_report("{\"error\":{\"code\":\"timeout\"}}").is_err());
    }
}
