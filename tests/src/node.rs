//! One `flo server` process.

use crate::binary;
use crate::certificates::Certificates;
use crate::flo::Flo;
use crate::host::Host;
use crate::http;
use crate::process::{Process, read_log};
use crate::scratch::Scratch;
use crate::status::ClusterStatus;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::{SocketAddrV4, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The exit code of a status without a leader (cli.md).
const NO_LEADER: i32 = 4;

/// One node of a cluster: its host, and its process while it runs.
///
/// Its ports are P for clients, P+1 for peers and P+2 for HTTP.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    process: Option<Process>,
}

/// The keyring of all clusters under test.
const KEYRING: &str = "k1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";

/// How a node is started.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) host: Host,
    pub(crate) data_dir: PathBuf,
    /// How it gets into its cluster, as flags.
    pub(crate) origin: [String; 2],
    pub(crate) log: PathBuf,
    /// The keyring of its cluster.
    pub(crate) keyring: PathBuf,
    /// Further flags.
    pub(crate) flags: Vec<String>,
    /// Its TLS certificates.
    pub(crate) certificates: Option<Certificates>,
    /// The token that administers its cluster, if the cluster is closed.
    pub(crate) token: Option<String>,
}

impl Settings {
    /// One of the initial members, with data and log in the folder.
    pub(crate) fn first(scratch: &Scratch, host: &Host, peers: &[(u64, SocketAddrV4)]) -> Self {
        let peers: Vec<String> = peers
            .iter()
            .map(|(member, address)| format!("{member}={address}"))
            .collect();
        Self::new(scratch, host, ["--peers".to_owned(), peers.join(",")])
    }

    /// A node that joins through this member, with data and log in the folder.
    pub(crate) fn later(scratch: &Scratch, host: &Host, member: SocketAddrV4) -> Self {
        Self::new(scratch, host, ["--join".to_owned(), member.to_string()])
    }

    fn new(scratch: &Scratch, host: &Host, origin: [String; 2]) -> Self {
        let node_id = host.node_id;
        let folder = scratch.path(&format!("node-{node_id}"));
        Self {
            host: host.clone(),
            data_dir: host.data_dir.clone().unwrap_or(folder),
            origin,
            flags: Vec::new(),
            certificates: host.certificates.clone(),
            token: None,
            keyring: keyring(scratch),
            log: scratch.log(&format!("node-{node_id}.log")),
        }
    }

    fn spawn(&self) -> Process {
        let host = &self.host;
        let mut command = binary::flo_within(&host.launcher);
        command
            .args(["server", "--node-id", &host.node_id.to_string()])
            .args(["--listen", &host.address(0).to_string()])
            .args(["--peer-listen", &host.address(1).to_string()])
            .args(["--http-listen", &host.address(2).to_string()])
            .args(&self.origin)
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(&self.flags)
            // The flag --access overrides it.
            .env("FLO_ACCESS", "open")
            .env("FLO_KEYRING_FILE", &self.keyring)
            .envs(host.environment.iter().cloned());
        if let Some(certificates) = &self.certificates {
            command.envs(certificates.of_a_node());
        }
        if !host.ip.is_loopback() {
            // A test has its own network, so it needs neither TLS nor tokens.
            command.arg("--insecure");
        }
        Process::spawn(command, self.log.clone())
    }
}

/// The file with the keyring of all nodes whose data is in the folder.
fn keyring(scratch: &Scratch) -> PathBuf {
    let file = scratch.path("keyring");
    if !file.exists() {
        fs::write(&file, KEYRING).expect("the folder has room");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("own file");
    }
    file
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
        self.settings.host.node_id
    }

    /// Its host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.settings.host
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.settings.data_dir
    }

    /// Its client endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.settings.host.address(0).to_string()
    }

    /// Its HTTP address, as `host:port`.
    #[must_use]
    pub fn http_address(&self) -> String {
        self.settings.host.address(2).to_string()
    }

    /// The value of a metric without labels.
    ///
    /// # Panics
    /// When the node does not answer, or has no such metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> f64 {
        http::metric(self.settings.host.address(2), name)
    }

    /// Calls to it.
    #[must_use]
    pub fn flo(&self) -> Flo {
        let flo = Flo::at(self.endpoint());
        let flo = match &self.settings.certificates {
            Some(certificates) => flo.with_certificates(certificates),
            None => flo,
        };
        match &self.settings.token {
            Some(token) => flo.with_token(token),
            None => flo,
        }
    }

    /// The id of its process, while it runs.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Whether its process is running.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_alive)
    }

    /// Pauses its process with SIGSTOP: it does nothing, but its connections stay.
    pub fn pause(&self) {
        self.process.iter().for_each(Process::pause);
    }

    /// Resumes it after [`Node::pause`].
    pub fn resume(&self) {
        self.process.iter().for_each(Process::resume);
    }

    /// Whether it was started and has not been killed or stopped since.
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

    /// Restarts it with the same data.
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

    /// Waits for its end, and returns the exit code and its whole output.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn end(&mut self) -> (ExitStatus, String) {
        (self.take().wait(), self.output())
    }

    /// Sets environment variables for its next start.
    ///
    /// # Panics
    /// When it runs.
    pub fn set_environment(&mut self, environment: Vec<(String, OsString)>) {
        assert!(
            self.process.is_none(),
            "a node is ended before its environment is changed"
        );
        self.settings.host.environment = environment;
    }

    /// The output of all its processes.
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
    /// The command's output, if the node does not answer.
    ///
    /// # Panics
    /// When the exit code does not match the presence of a leader.
    pub fn status(&self) -> Result<ClusterStatus, String> {
        // A command would retry the connection for a while.
        let address = self.settings.host.address(0);
        TcpStream::connect(address).map_err(|error| error.to_string())?;
        let line = ["-o", "json", "--timeout", "5s", "cluster", "status"];
        let answer = self.flo().run(&line);
        let status = answer.decode_stdout::<ClusterStatus>();
        let status = status.map_err(|_| answer.show())?;
        let expected = if status.leader_id.is_some() {
            0
        } else {
            NO_LEADER
        };
        assert_eq!(answer.code, expected, "{}", answer.show());
        Ok(status)
    }

    fn take(&mut self) -> Process {
        let process = self.process.take();
        process.unwrap_or_else(|| panic!("node {} does not run", self.id()))
    }
}
