//! `flo worker exec`: a worker that runs shell commands.

use crate::binary;
use crate::flo::Flo;
use crate::process::Process;
use crate::scratch::Scratch;
use std::process::ExitStatus;

/// A worker whose actions are commands for `sh -c`.
#[derive(Debug)]
pub struct CommandWorker {
    process: Process,
}

impl CommandWorker {
    /// Starts it and waits until it may be given tasks.
    ///
    /// # Panics
    /// When that does not happen.
    #[must_use]
    pub fn start(flo: &Flo, scratch: &Scratch, id: &str, actions: &[(&str, &str)]) -> Self {
        let mut command = binary::flo();
        command
            .args(["worker", "exec", "--worker-id", id])
            .env("FLO_ENDPOINT", flo.endpoints())
            .env("TMPDIR", scratch.path(""));
        for (name, script) in actions {
            command.arg("--action").arg(format!("{name}={script}"));
        }
        let process = Process::spawn(command, scratch.log(&format!("worker-{id}.log")));
        process.await_ready();
        Self { process }
    }

    /// Kills it with SIGKILL. The command that it runs lives on.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGTERM, upon which it drains, and waits for the end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn drain(&mut self) -> ExitStatus {
        self.process.terminate()
    }
}
