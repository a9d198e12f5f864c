//! A process that runs in the background.

use crate::wait::{TIMEOUT, wait_until};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The line that a server or a worker prints once it serves.
const READY: &str = "ready";

/// A process of `flo` that runs in the background and is killed when this is dropped.
///
/// Its stdout and stderr are appended to a log.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
    ready: Receiver<()>,
}

impl Process {
    /// Starts the command.
    pub(crate) fn spawn(mut command: Command, log: PathBuf) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(append(&log))
            .spawn()
            .expect("the binary can be run");
        let stdout = child.stdout.take().expect("it is piped");
        let (said_ready, ready) = sync_channel(1);
        let copy = append(&log);
        thread::spawn(move || copy_lines(stdout, copy, &said_ready));
        Self { child, log, ready }
    }

    /// Waits for the line `ready`.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn await_ready(&self) {
        let said = self.ready.recv_timeout(TIMEOUT);
        assert!(
            said.is_ok(),
            "expected the line `{READY}`, but found only:\n{}",
            self.output()
        );
    }

    /// Whether it is still running.
    pub(crate) fn is_alive(&self) -> bool {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), look) == Ok(WaitStatus::StillAlive)
    }

    /// Kills it with SIGKILL.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child of this process");
        self.child.wait().expect("a child of this process");
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.ask_to_end();
        self.wait()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sets how many files it may open from now on: at most as many as when it was started. Files that are already open stay
    /// open, even if there are more.
    ///
    /// # Panics
    /// When the limit cannot be set.
    pub fn limit_files(&self, count: u64) {
        let set = Command::new("prlimit")
            .arg(format!("--pid={}", self.id()))
            // The soft limit only: a process without privileges could not raise the hard one again.
            .arg(format!("--nofile={count}:"))
            .status();
        let is_set = set.is_ok_and(|status| status.success());
        assert!(
            is_set,
            "expected that `prlimit` sets the limit of open files"
        );
    }

    /// Pauses it with SIGSTOP.
    pub(crate) fn pause(&self) {
        signal::kill(self.pid(), Signal::SIGSTOP).expect("a child of this process");
    }

    /// Resumes it.
    pub(crate) fn resume(&self) {
        signal::kill(self.pid(), Signal::SIGCONT).expect("a child of this process");
    }

    /// Sends SIGTERM.
    pub(crate) fn ask_to_end(&self) {
        signal::kill(self.pid(), Signal::SIGTERM).expect("a child of this process");
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_until("the process to end", TIMEOUT, || {
            let status = self.child.try_wait().expect("a child of this process");
            status.ok_or_else(|| format!("it still runs and printed:\n{}", self.output()))
        })
    }

    /// Its output so far, with that of earlier processes with the same log.
    ///
    /// # Panics
    /// When the log cannot be read.
    #[must_use]
    pub fn output(&self) -> String {
        read_log(&self.log)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are small"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; a failure cannot be reported here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The content of a log.
pub(crate) fn read_log(log: &Path) -> String {
    let content = fs::read(log).expect("the log of a process");
    String::from_utf8_lossy(&content).into_owned()
}

fn append(log: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log in the test's own folder")
}

fn copy_lines(stdout: ChildStdout, mut copy: File, said_ready: &SyncSender<()>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        // The folder may be gone already; the process must not block for that.
        let _ = writeln!(copy, "{line}");
        if line.trim() == READY {
            let _ = said_ready.try_send(());
        }
    }
}
