//! A child process that never outlives its value.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::interrupt::Interrupt;
use crate::wait::{pause, wait_for};

/// How long a process may take to end by itself.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How long a dropped process may take, counted from the first request to stop.
const DROP_LIMIT: Duration = Duration::from_secs(4);

/// A running process. Dropping it stops it.
pub(crate) struct Process {
    name: String,
    child: Child,
    /// When it was first asked to stop.
    asked_at: Option<Instant>,
}

impl Process {
    /// Starts the command; its output is appended to the log.
    ///
    /// # Errors
    /// If the log cannot be opened or the program does not start.
    pub(crate) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let log = File::options().create(true).append(true).open(log);
        let log = log.with_context(|| format!("expected a log file for {name}"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("expected {name} to start"))?;
        let name = name.to_owned();
        Ok(Self {
            name,
            child,
            asked_at: None,
        })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// # Errors
    /// If it has ended.
    pub(crate) fn expect_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("expected {} to run, but it ended with {status}", self.name),
        }
    }

    /// Ends it immediately, as a power cut would: SIGKILL.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until it has ended successfully.
    ///
    /// # Errors
    /// If it fails, or does not end within the limit; if the work is interrupted.
    pub(crate) fn wait_for_end(&mut self, limit: Duration, interrupt: &Interrupt) -> Result<()> {
        self.wait_for_end_beside(limit, interrupt, || Ok(()))
    }

    /// The same, while a function is called repeatedly.
    ///
    /// # Errors
    /// As [`Self::wait_for_end`], or what the function returns.
    pub(crate) fn wait_for_end_beside(
        &mut self,
        limit: Duration,
        interrupt: &Interrupt,
        mut beside: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let what = format!("{} to end", self.name);
        let probe = || match self.child.try_wait()? {
            None => beside().map(|()| None),
            ended => Ok(ended),
        };
        let status = wait_for(&what, limit, interrupt, probe)?;
        if !status.success() {
            bail!("expected {what} well, but it ended with {status}");
        }
        Ok(())
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to stop with SIGTERM, without waiting.
    pub(crate) fn ask_to_stop(&mut self) {
        if !self.is_running() {
            return;
        }
        self.asked_at.get_or_insert_with(Instant::now);
        let id = i32::try_from(self.child.id()).expect("a process id is a positive i32");
        // Fails only if it has already ended.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM first, because a killed worker leaves the programs behind that it runs.
        self.ask_to_stop();
        let has_time = |asked_at: Instant| asked_at.elapsed() < DROP_LIMIT;
        while self.is_running() && self.asked_at.is_some_and(has_time) {
            pause();
        }
        // Fails only if it has ended.
        let _ = self.kill();
    }
}

/// Asks all of them to stop and waits until they have.
///
/// # Errors
/// Names the first that did not stop, or failed.
pub(crate) fn stop_all<'a>(
    processes: impl IntoIterator<Item = &'a mut Process>,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut processes: Vec<&mut Process> = processes.into_iter().collect();
    for process in &mut processes {
        process.ask_to_stop();
    }
    for process in &mut processes {
        let what = format!("{} to stop", process.name);
        let probe = || Ok(process.child.try_wait()?);
        let status = wait_for(&what, STOP_LIMIT, interrupt, probe)?;
        if !status.success() {
            bail!("expected {what}, but it ended with {status}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: &Path) -> Process {
        Process::start("sh", Command::new("/bin/sh").args(["-c", script]), log).unwrap()
    }

    fn log() -> tempfile::NamedTempFile {
        tempfile::NamedTempFile::new().unwrap()
    }

    #[test]
    fn both_outputs_go_to_the_log() {
        let log = log();
        let mut process = shell("echo out; echo err >&2", log.path());
        process.child.wait().unwrap();
        assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "out\nerr\n");
        let error = process.expect_running().unwrap_err().to_string();
        assert!(error.contains("expected sh to run"), "{error}");
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let log = log();
        let mut process = shell("exec sleep 600", log.path());
        process.expect_running().unwrap();
        let id = Pid::from_raw(i32::try_from(process.id()).unwrap());
        drop(process);
        assert!(kill(id, None).is_err(), "the process id is free");
    }

    #[test]
    fn a_process_that_is_asked_to_stop_has_its_own_way_to_do_so() {
        let log = log();
        let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let mut process = shell(script, log.path());
        while std::fs::read(log.path()).unwrap().is_empty() {
            process.expect_running().unwrap();
        }
        stop_all([&mut process], &Interrupt::never()).unwrap();
    }

    #[test]
    fn a_process_that_is_waited_for_ends_well_or_is_named() {
        let log = log();
        let limit = Duration::from_secs(600);
        let wait = |script| shell(script, log.path()).wait_for_end(limit, &Interrupt::never());
        wait("true").unwrap();
        let error = wait("exit 3").unwrap_err().to_string();
        assert!(error.contains("expected sh to end well"), "{error}");
    }

    #[test]
    fn a_process_that_fails_on_its_way_out_is_named() {
        let log = log();
        let mut process = shell("exit 3", log.path());
        process.child.wait().unwrap();
        let error = stop_all([&mut process], &Interrupt::never())
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected sh to stop"), "{error}");
    }
}
