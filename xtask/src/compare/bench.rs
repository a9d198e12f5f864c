//! What every measurement needs, and how a load is run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::options::Options;
use super::report::Report;
use crate::interrupt::Interrupt;
use crate::load;
use crate::patience::wait_for;
use crate::process::Process;
use crate::sandbox::Sandbox;

/// How long a process may take until it says that it is ready.
const START_LIMIT: Duration = Duration::from_secs(60);

/// What every measurement needs.
pub(super) struct Bench<'a> {
    /// The binary `flo`, as it is released.
    pub(super) flo: PathBuf,
    /// The binary `flotilla-peers`.
    pub(super) peers: PathBuf,
    /// What the caller wants.
    pub(super) options: &'a Options,
    /// Where data and logs go.
    pub(super) sandbox: &'a Sandbox,
}

impl Bench<'_> {
    /// Whether to go on.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.sandbox.interrupt
    }

    /// The options of a load that say how many clients there are, and for how long.
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

    /// Runs a load to its end and reads what it printed.
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

    /// For how long a load runs.
    fn length(&self) -> Duration {
        let Options {
            seconds, warm_up, ..
        } = self.options;
        Duration::from_secs(u64::from(seconds + warm_up))
    }

    /// Starts a process that says `ready` on a line of its own, and waits until it has.
    ///
    /// # Errors
    /// If it ends, or does not say so in time.
    pub(super) fn start(&self, name: &str, command: &mut Command) -> Result<Process> {
        let log = self.sandbox.log(name);
        // What an earlier one said is not to be taken for this one's.
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

    /// A folder for the data of one system; nothing is in it.
    ///
    /// # Errors
    /// If there is no room for it.
    pub(super) fn fresh_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.sandbox.folder().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}
