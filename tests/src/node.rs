//! One `flo server` process.

use crate::binary;
use crate::flo::Flo;
use crate::process::{Process, read_log};
use crate::scratch::Scratch;
use crate::status::ClusterStatus;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The exit code of a status without a leader (cli.md).
const NO_LEADER: i32 = 4;

/// One node of a cluster: its place, and its process while it runs.
///
/// Its ports are P for clients, P+1 for peers and P+2 for HTTP.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    process: Option<Process>,
}

/// What a node is started with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) node_id: u64,
    pub(crate) port: u16,
    pub(crate) data_dir: PathBuf,
    pub(crate) members: Vec<(u64, u16)>,
    pub(crate) log: PathBuf,
    /// Further flags.
    pub(crate) flags: Vec<String>,
}

impl Settings {
    /// A node with data and log in the folder; `members` are ids and first ports, its own too.
    pub(crate) fn new(scratch: &Scratch, node_id: u64, members: &[(u64, u16)]) -> Self {
        let own = members.iter().find(|(member, _)| *member == node_id);
        Self {
            node_id,
            port: own.expect("a node is one of the members").1,
            data_dir: scratch.path(&format!("node-{node_id}")),
            members: members.to_vec(),
            flags: Vec::new(),
            log: scratch.log(&format!("node-{node_id}.log")),
        }
    }

    fn spawn(&self) -> Process {
        let peers: Vec<String> = self
            .members
            .iter()
            .map(|(member, port)| format!("{member}={}", local(port + 1)))
            .collect();
        let mut command = binary::flo();
        command
            .args(["server", "--node-id", &self.node_id.to_string()])
            .args(["--listen", &local(self.port)])
            .args(["--peer-listen", &local(self.port + 1)])
            .args(["--http-listen", &local(self.port + 2)])
            .args(["--peers", &peers.join(",")])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(&self.flags);
        Process::spawn(command, self.log.clone())
    }
}

impl Node {
    /// Starts it.
    pub(crate) fn start(settings: Settings) -> Self {
        let process = Some(settings.spawn());
        Self { settings, process }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.settings.node_id
    }

    /// Its data.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.settings.data_dir
    }

    /// Where clients find it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        local(self.settings.port)
    }

    /// Whether it was started and not killed or stopped since.
    ///
    /// # Panics
    /// When it has ended by itself.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let process = self.process.as_ref();
        let is_well = process.is_none_or(Process::is_alive);
        assert!(is_well, "node {} has ended by itself", self.id());
        process.is_some()
    }

    /// Kills it with SIGKILL.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self) {
        self.take().kill();
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// When it does not run, or does not end.
    pub fn stop(&mut self) -> ExitStatus {
        self.take().terminate()
    }

    /// Starts it again, on the same data.
    ///
    /// # Panics
    /// When it runs.
    pub fn restart(&mut self) {
        assert!(
            self.process.is_none(),
            "a node is ended before it is restarted"
        );
        self.process = Some(self.settings.spawn());
    }

    /// Waits for its end, and returns the exit code and all that it ever printed.
    ///
    /// # Panics
    /// When it goes on.
    pub fn end(&mut self) -> (ExitStatus, String) {
        (self.take().wait(), self.output())
    }

    /// Everything that it ever printed.
    ///
    /// # Panics
    /// When the log cannot be read.
    #[must_use]
    pub fn output(&self) -> String {
        read_log(&self.settings.log)
    }

    /// The cluster as this node sees it.
    ///
    /// # Errors
    /// What the command said, when the node does not answer.
    ///
    /// # Panics
    /// When the exit code does not tell whether there is a leader.
    pub fn status(&self) -> Result<ClusterStatus, String> {
        // A command would go on trying to connect for a while.
        let address = (Ipv4Addr::LOCALHOST, self.settings.port);
        TcpStream::connect(address).map_err(|error| error.to_string())?;
        let line = ["-o", "json", "--timeout", "5s", "cluster", "status"];
        let answer = Flo::at(self.endpoint()).run(&line);
        let status = answer.decode_stdout::<ClusterStatus>();
        let status = status.map_err(|_| answer.show())?;
        let expected = if status.leader.is_some() {
            0
        } else {
            NO_LEADER
        };
        assert_eq!(answer.code, expected, "{}", answer.show());
        Ok(status)
    }

    fn take(&mut self) -> Process {
        let process = self.process.take();
        process.unwrap_or_else(|| panic!("node {} does not run", self.settings.node_id))
    }
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
