//! `flo dev`: one node in one process.

use crate::binary;
use crate::flo::Flo;
use crate::ports;
use crate::process::Process;
use crate::room::Room;
use crate::scratch::Scratch;

/// A node of `flo dev --ephemeral`.
#[derive(Debug)]
pub struct DevNode {
    // Dropped in this order.
    process: Process,
    scratch: Scratch,
    port: u16,
    _room: Room,
}

impl DevNode {
    /// Starts it and waits for the line `ready`.
    ///
    /// # Panics
    /// When it does not come.
    #[must_use]
    pub fn start() -> Self {
        let room = Room::take(1);
        let scratch = Scratch::new();
        let port = ports::draw(3);
        let mut command = binary::flo();
        command
            .args(["dev", "--ephemeral", "--port", &port.to_string()])
            // It is killed in the end, and must not leave its data behind.
            .env("TMPDIR", scratch.path(""));
        let process = Process::spawn(command, scratch.log("dev.log"));
        process.await_ready();
        Self {
            process,
            scratch,
            port,
            _room: room,
        }
    }

    /// A folder for the test's own files.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Where clients find it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Commands to it.
    #[must_use]
    pub fn flo(&self) -> Flo {
        Flo::at(self.endpoint())
    }
}
