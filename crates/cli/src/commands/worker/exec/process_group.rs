//! A program and all processes that it starts.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use tokio::process::{Child, Command};

/// The processes of one attempt. Dropping it kills those that still run.
///
/// A separate group also protects the programs from Ctrl-C at the worker's terminal, so that they
/// can finish while the worker drains.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    /// `None` once the group was killed, because its number may then be reused.
    id: Option<Pid>,
}

impl ProcessGroup {
    /// Starts a process as the leader of a new group.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Self, Child)> {
        let child = command.process_group(0).spawn()?;
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        Ok((Self { id }, child))
    }

    /// Kills all remaining processes of the group.
    pub(super) fn kill(&mut self) {
        if let Some(id) = self.id.take() {
            // The group may already have ended.
            let _ = killpg(id, Signal::SIGKILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
