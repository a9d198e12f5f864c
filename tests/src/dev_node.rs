//! `flo dev`: a cluster in one process.

use crate::binary;
use crate::flo::Flo;
use crate::ports;
use crate::process::Process;
use crate::process_slots::ProcessSlots;
use crate::scratch::Scratch;

/// The distance between the ports of one node and those of the next (cli.md).
const PORTS_PER_NODE: u16 = 10;
const NODES_MAX: u16 = 3;
/// The distance between a node's port for clients and its port for HTTP.
const HTTP_PORT_OFFSET: u16 = 2;

/// A process of `flo dev`.
#[derive(Debug)]
pub struct DevNode {
    // Dropped in this order.
    process: Process,
    scratch: Scratch,
    port: u16,
    arguments: Vec<String>,
    _process_slots: ProcessSlots,
}

impl DevNode {
    /// Starts one node without persistent data, and waits for the line `ready`.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&["--ephemeral"])
    }

    /// Starts at most three nodes with these arguments, and waits for the line `ready`. A relative
    /// `--data-dir` is in the test's folder.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        let process_slots = ProcessSlots::take(1);
        let scratch = Scratch::new();
        let port = ports::draw(NODES_MAX * PORTS_PER_NODE);
        let port_text = port.to_string();
        let arguments = [&["dev", "--port", &port_text], arguments].concat();
        let arguments: Vec<String> = arguments.into_iter().map(ToOwned::to_owned).collect();
        Self {
            process: spawn(&arguments, &scratch),
            scratch,
            port,
            arguments,
            _process_slots: process_slots,
        }
    }

    /// Kills it with SIGKILL, starts it again and waits for the line `ready`.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = spawn(&self.arguments, &self.scratch);
    }

    /// Calls to one of several nodes, numbered from 1.
    #[must_use]
    pub fn flo_at(&self, node: u16) -> Flo {
        Flo::at(local(self.port + (node - 1) * PORTS_PER_NODE))
    }

    /// A folder for the test's files.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its client endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        local(self.port)
    }

    /// Its HTTP address, as `host:port`.
    #[must_use]
    pub fn http_address(&self) -> String {
        local(self.port + HTTP_PORT_OFFSET)
    }

    /// The URL of its HTTP API for the namespace `default`.
    #[must_use]
    pub fn http_api(&self) -> String {
        format!("http://{}/v1/namespaces/default", self.http_address())
    }

    /// Calls to it.
    #[must_use]
    pub fn flo(&self) -> Flo {
        Flo::at(self.endpoint())
    }
}

fn spawn(arguments: &[String], scratch: &Scratch) -> Process {
    let mut command = binary::flo();
    command
        .args(arguments)
        .current_dir(scratch.path(""))
        // It is killed at the end, and must not leave its data behind.
        .env("TMPDIR", scratch.path(""));
    let process = Process::spawn(command, scratch.log("dev.log"));
    process.await_ready();
    process
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
