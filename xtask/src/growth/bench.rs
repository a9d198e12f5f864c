//! What every series needs: clusters, loads, and figures drawn from the reports.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::load::Load;
use super::options::Options;
use super::report::Report;
use super::show;
use crate::cluster::Cluster;
use crate::interrupt::Interrupt;
use crate::load::{self, Program};
use crate::sandbox::Sandbox;
use crate::stages::say;
use crate::{child, flo};

/// What every series needs.
pub(super) struct Bench<'a> {
    /// The binary `flo`, built for release.
    pub(super) flo: PathBuf,
    /// The caller's options.
    pub(super) options: &'a Options,
    sandbox: &'a Sandbox,
    /// How many reports are saved.
    saved: Cell<u32>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(flo: PathBuf, options: &'a Options, sandbox: &'a Sandbox) -> Self {
        Self {
            flo,
            options,
            sandbox,
            saved: Cell::new(0),
        }
    }

    /// Whether to continue.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.sandbox.interrupt
    }

    /// Starts three new nodes.
    ///
    /// # Errors
    /// If they do not start or do not serve.
    pub(super) fn start(&self) -> Result<Cluster> {
        Cluster::start_afresh(&self.flo, self.sandbox.folder(), self.interrupt())
    }

    /// The same beside other clusters, in a folder of this name.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(super) fn start_beside(&self, name: &str) -> Result<Cluster> {
        let folder = self.sandbox.folder().join(name);
        Cluster::start_afresh(&self.flo, &folder, self.interrupt())
    }

    /// Stops such a cluster, and removes its files.
    ///
    /// # Errors
    /// If a node does not end well, or the folder cannot be removed.
    pub(super) fn stop_beside(&self, name: &str, cluster: Cluster) -> Result<()> {
        cluster.stop(self.interrupt())?;
        Ok(fs::remove_dir_all(self.sandbox.folder().join(name))?)
    }

    /// Runs a load on a new cluster.
    ///
    /// # Errors
    /// If the nodes do not start or do not serve, or the load fails.
    pub(super) fn measure_alone(&self, load: &Load) -> Result<Report> {
        let cluster = self.start()?;
        let report = self.measure(&cluster, load)?;
        cluster.stop(self.interrupt())?;
        Ok(report)
    }

    /// Runs a load on a cluster.
    ///
    /// # Errors
    /// If it fails.
    pub(super) fn measure(&self, cluster: &Cluster, load: &Load) -> Result<Report> {
        self.measure_beside(cluster, load, || Ok(()))
    }

    /// The same, while a function is called repeatedly.
    ///
    /// # Errors
    /// If one of them fails.
    pub(super) fn measure_beside(
        &self,
        cluster: &Cluster,
        load: &Load,
        beside: impl FnMut() -> Result<()>,
    ) -> Result<Report> {
        let Options {
            seconds, warm_up, ..
        } = *self.options;
        let warm_up = warm_up.max(load.warm_up_min);
        let mut arguments = load.arguments();
        for (option, value) in [("--seconds", seconds), ("--warm-up", warm_up)] {
            arguments.extend([option.to_owned(), value.to_string()]);
        }
        let call = Call {
            name: load.name(),
            arguments,
            length: Duration::from_secs(u64::from(seconds + warm_up)),
        };
        self.run(cluster, &call, beside)
    }

    /// Runs a load that ends on its own, at the latest after this duration.
    ///
    /// # Errors
    /// If it fails.
    pub(super) fn fill(&self, cluster: &Cluster, load: &Load, limit: Duration) -> Result<Report> {
        let call = Call {
            name: load.name(),
            arguments: load.arguments(),
            length: limit,
        };
        self.run(cluster, &call, || Ok(()))
    }

    /// Draws a figure from reports; the options name the x axis.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub(super) fn plot<'b>(
        &self,
        name: &str,
        options: &[&str],
        reports: impl IntoIterator<Item = &'b Report>,
    ) -> Result<PathBuf> {
        let file = self.sandbox.folder().join(format!("{name}.svg"));
        let mut command = flo::command(&self.flo);
        command
            .args(["bench", "plot"])
            .args(options)
            .arg("--out")
            .arg(&file)
            .args(reports.into_iter().map(|report| &report.file));
        // Its output says only that it has drawn.
        child::first_line(&mut command)?;
        Ok(file)
    }

    /// What `flo` prints as its help.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn help(&self, words: &[&str]) -> Result<String> {
        let mut command: Command = flo::command(&self.flo);
        let output = command.args(words).arg("--help").output();
        let output = output.context("expected `flo` to start")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn run(
        &self,
        cluster: &Cluster,
        call: &Call,
        beside: impl FnMut() -> Result<()>,
    ) -> Result<Report> {
        let name = &call.name;
        let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
        let program = Program {
            name: "flo bench",
            command: &mut cluster.client().command(&words),
        };
        let printed = load::measure_beside(self.sandbox, program, call.length, beside)
            .with_context(|| format!("expected figures of `flo bench {name}`"))?;
        let number = self.saved.replace(self.saved.get() + 1);
        let file = self.sandbox.folder().join(format!("report-{number}.json"));
        fs::write(&file, printed.to_string())?;
        let report = Report::read(&printed, file)?;
        say(format!("{name}: {}", told(&report)));
        Ok(report)
    }
}

/// A call of `flo bench`.
struct Call {
    /// The load's name.
    name: String,
    arguments: Vec<String>,
    /// How long it takes at most.
    length: Duration,
}

/// A report in one line.
fn told(report: &Report) -> String {
    let [p50, p99, _, transition_p99] = show::latencies(report);
    let transitions = match report.transition {
        Some(_) => format!(", p99 of transitions {transition_p99} ms"),
        None => String::new(),
    };
    let (rate, errors) = (report.rate, report.errors);
    format!("{rate:.0}/s, p50 {p50} ms, p99 {p99} ms{transitions}, {errors} errors")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn a_line_tells_of_transitions_where_there_are_some() {
        assert_eq!(
            told(&report("steps", 1_200.4, 50.0)),
            "1200/s, p50 50.00 ms, p99 100.00 ms, p99 of transitions 25.00 ms, 0 errors"
        );
        assert_eq!(
            told(&report("start", 9_000.0, 6.0)),
            "9000/s, p50 6.00 ms, p99 12.00 ms, 0 errors"
        );
    }
}
