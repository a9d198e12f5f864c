//! A program and everything that it starts.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use tokio::process::{Child, Command};

/// The processes of one attempt. Dropping it kills those that are left.
///
/// A group of its own also keeps Ctrl-C at the worker's terminal from the programs, which may
/// finish while the worker drains.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    /// `None` once the group was killed: its number may then be given to others.
    id: Option<Pid>,
}

impl ProcessGroup {
    /// Starts a process at the head of a new group.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Self, Child)> {
        let child = command.process_group(0).spawn()?;
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        Ok((Self { id }, child))
    }

    /// Ends every process that is left in the group.
    pub(super) fn kill(&mut self) {
        if let Some(id) = self.id.take() {
            // The group may have ended by itself.
            let _ = killpg(id, Signal::SIGKILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
