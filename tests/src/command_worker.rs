//! `flo worker exec`: a worker that runs shell commands.

use crate::flo::Flo;
use crate::process::Process;
use crate::scratch::Scratch;
use std::process::ExitStatus;

/// What a worker runs for the records of a consumer group.
#[derive(Clone, Copy, Debug)]
pub struct RecordCommand<'a> {
    /// The stream.
    pub stream: &'a str,
    /// The group of the stream.
    pub group: &'a str,
    /// A command for `sh -c`, for each record.
    pub script: &'a str,
}

/// A worker whose actions are commands for `sh -c`.
#[derive(Debug)]
pub struct CommandWorker {
    process: Process,
}

impl CommandWorker {
    /// Starts it and waits until it can get tasks.
    ///
    /// # Panics
    /// When that does not happen in time.
    #[must_use]
    pub fn start(flo: &Flo, scratch: &Scratch, id: &str, actions: &[(&str, &str)]) -> Self {
        Self::start_with(flo, scratch, &["--worker-id", id], actions)
    }

    /// Starts a worker that runs a command for `sh -c` for each record of a stream, and waits until it can
    /// get records.
    ///
    /// # Panics
    /// When that does not happen in time.
    #[must_use]
    pub fn consume(flo: &Flo, scratch: &Scratch, id: &str, command: RecordCommand<'_>) -> Self {
        let arguments = [
            "--worker-id",
            id,
            "--stream",
            command.stream,
            "--group",
            command.group,
            "--",
            "sh",
            "-c",
            command.script,
        ];
        Self::exec(flo, scratch, &arguments)
    }

    /// Starts it with these flags, the worker's id first, and waits until it can get tasks.
    ///
    /// # Panics
    /// When that does not happen in time.
    #[must_use]
    pub fn start_with(
        flo: &Flo,
        scratch: &Scratch,
        flags: &[&str],
        actions: &[(&str, &str)],
    ) -> Self {
        let actions: Vec<String> = actions
            .iter()
            .map(|(name, script)| format!("--action={name}={script}"))
            .collect();
        let mut arguments = flags.to_vec();
        arguments.extend(actions.iter().map(String::as_str));
        Self::exec(flo, scratch, &arguments)
    }

    fn exec(flo: &Flo, scratch: &Scratch, arguments: &[&str]) -> Self {
        let id = arguments.get(1).expect("a flag and the worker's id");
        let mut command = flo.command();
        command
            .args(["worker", "exec"])
            .args(arguments)
            .env("TMPDIR", scratch.path(""));
        let process = Process::spawn(command, scratch.log(&format!("worker-{id}.log")));
        process.await_ready();
        Self { process }
    }

    /// Kills it with SIGKILL. The command that it runs survives.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGTERM, which makes it drain, and waits until it has ended.
    ///
    /// # Panics
    /// When it does not end.
    pub fn drain(&mut self) -> ExitStatus {
        self.begin_drain();
        self.wait()
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }

    /// Sends SIGTERM, which makes it drain.
    pub fn begin_drain(&mut self) {
        self.process.ask_to_end();
    }

    /// Its output so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.output()
    }
}
