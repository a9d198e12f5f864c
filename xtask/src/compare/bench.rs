//! What every measurement needs, and how it runs a load.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::options::Options;
use super::report::Report;
use crate::interrupt::Interrupt;
use crate::load;
use crate::process::Process;
use crate::sandbox::Sandbox;
use crate::wait::wait_for;

/// How long a process may take until it reports that it is ready.
const START_LIMIT: Duration = Duration::from_secs(60);

/// What every measurement needs.
pub(super) struct Bench<'a> {
    /// The binary `flo`, built for release.
    pub(super) flo: PathBuf,
    /// The binary `flotilla-peers`.
    pub(super) peers: PathBuf,
    /// The caller's options.
    pub(super) options: &'a Options,
    /// Where data and logs go.
    pub(super) sandbox: &'a Sandbox,
}

impl Bench<'_> {
    /// Whether to continue.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.sandbox.interrupt
    }

    /// The options of a load: the number of clients and the duration.
    pub(super) fn pace(&self, clients: u16) -> Vec<String> {
        let Options {
            seconds, warm_up, ..
        } = self.options;
        let pace = [
            ("--clients", u32::from(clients)),
            ("--seconds", *seconds),
            ("--warm-up", *warm_up),
        ];
        let words = pace.map(|(option, number)| [option.to_owned(), number.to_string()]);
        words.concat()
    }

    /// Runs a load to its end and reads its report.
    ///
    /// # Errors
    /// If it fails, or takes far too long.
    pub(super) fn load(&self, name: &str, command: &mut Command) -> Result<Report> {
        let report = load::measure(self.sandbox, name, command, self.length())?;
        Report::read(&report)
    }

    /// Runs a program of ours to its end.
    ///
    /// # Errors
    /// If it fails, or takes far too long.
    pub(super) fn run(&self, name: &str, command: &mut Command) -> Result<()> {
        load::run(self.sandbox, name, command, self.length())
    }

    /// How long a load runs.
    fn length(&self) -> Duration {
        let Options {
            seconds, warm_up, ..
        } = self.options;
        Duration::from_secs(u64::from(seconds + warm_up))
    }

    /// Starts a process that prints `ready` on a separate line, and waits for that line.
    ///
    /// # Errors
    /// If it ends, or does not print it in time.
    pub(super) fn start(&self, name: &str, command: &mut Command) -> Result<Process> {
        let log = self.sandbox.log(name);
        // A line from an earlier process must not count for this one.
        let _ = fs::remove_file(&log);
        let mut process = Process::start(name, command, &log)?;
        wait_for(
            &format!("{name} to be ready"),
            START_LIMIT,
            self.interrupt(),
            || {
                process.expect_running()?;
                let said = fs::read_to_string(&log)?;
                Ok(said.lines().any(|line| line == "ready").then_some(()))
            },
        )?;
        Ok(process)
    }

    /// An empty folder for the data of one system.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn fresh_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.sandbox.folder().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}
