//! A node's configuration: its fields, their defaults and their validation.

mod oidc;
mod peer;
mod tls;

pub use oidc::{OidcConfigInvalid, OidcIssuer};
pub use peer::Peer;

pub(crate) use oidc::KeySource;

use crate::limits::{MEMORY_BYTES_MIN, WASM_MEMORY_BYTES_MIN};
use flotilla_engine::AccessMode;
use flotilla_engine::limits::SLOTS_MAX;
use flotilla_replica::{Tuning, host_of};
use flotilla_trace::{Endpoint, SampleRatio};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Which callers must present a client certificate to a node with TLS (X11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Those without a token.
    Optional,
    /// All callers.
    Required,
}

/// The configuration of a node. The defaults describe a single node on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The node's id: at least 1, never reused.
    pub node_id: u64,
    /// The address that serves gRPC clients.
    pub listen: SocketAddr,
    /// The address that serves HTTP. Workers receive the host of `advertise` with this port if HTTP
    /// listens on the interface of `listen` or on all interfaces; otherwise they receive this
    /// address.
    pub http_listen: SocketAddr,
    /// The address that serves the other nodes.
    pub peer_listen: SocketAddr,
    /// The address that serves operators: probes, metrics and the calls of `flo cluster`, apart from the load of clients. Without
    /// it, `http_listen` alone serves probes and metrics, and `listen` alone those calls.
    pub admin_listen: Option<SocketAddr>,
    /// The `host:port` that clients use to reach `listen`; `listen` itself if it is not set.
    pub advertise: Option<String>,
    /// The directory of the log and the state; created if it does not exist.
    pub data_dir: PathBuf,
    /// All first members, this node included; the same list on each of them. `None`: a single node.
    #[serde(deserialize_with = "peer::list")]
    pub peers: Vec<Peer>,
    /// The peer address of any member; set on a node that joins an existing cluster.
    pub join: Option<String>,
    /// Hosts of members that `peers` and `join` do not name, separated by commas. With TLS, a node accepts the calls of members
    /// only: their certificates must be valid for the host of a member that the node knows, or for one of these.
    #[serde(deserialize_with = "peer::names")]
    pub peer_names: Vec<String>,
    /// The access mode of a new cluster: `closed` if callers need a credential, or `open`. It has an effect only when the cluster
    /// is formed; the same on all first members.
    #[serde(deserialize_with = "access_mode")]
    pub access: AccessMode,
    /// A file with the bootstrap token of a new cluster, which administers it; the same on all first members. Without it, a
    /// single node that forms a closed cluster generates the token and writes it to its data directory.
    pub bootstrap_token_file: Option<PathBuf>,
    /// A file with the secret keys that all nodes share; the same on all nodes, and checked for changes while a node runs. A
    /// closed cluster needs it. Without it, a single node generates the keys and writes them to its data directory.
    pub keyring_file: Option<PathBuf>,
    /// Whether every caller must present a client certificate, with TLS: `required`, or `optional` if a token suffices.
    #[serde(deserialize_with = "client_certificates")]
    pub client_certificates: ClientCertificates,
    /// The issuers whose tokens prove who calls; the same on all nodes. Only in a file.
    pub oidc: Vec<OidcIssuer>,
    /// Requires a token or a client certificate for every call at this node, even if the cluster is open. While a voter has it, the cluster cannot be
    /// opened.
    pub require_token: bool,
    /// Serves `/metrics` without a token, even if the cluster is closed.
    pub metrics_public: bool,
    /// Allows non-loopback addresses without TLS, or with the access mode `open`.
    pub insecure: bool,
    /// The node's certificate for clients, peers and HTTP, followed by its intermediates: a PEM
    /// file, checked for changes while the node runs. TLS needs all three of its files.
    pub tls_cert: Option<PathBuf>,
    /// The private key of `tls_cert`: a PEM file.
    pub tls_key: Option<PathBuf>,
    /// The authorities that sign the certificates of nodes and clients: a PEM file.
    pub tls_ca: Option<PathBuf>,
    /// The node's certificate for its peers, if it is another than `tls_cert`.
    pub tls_peer_cert: Option<PathBuf>,
    /// The private key of `tls_peer_cert`: a PEM file.
    pub tls_peer_key: Option<PathBuf>,
    /// The authorities that sign the certificates of nodes, if they are others than those in `tls_ca`.
    pub tls_peer_ca: Option<PathBuf>,
    /// Snapshot after this many bytes of log; each node uses 60–100 % of it, by its id, so that
    /// snapshots are staggered.
    pub snapshot_log_bytes: u64,
    /// A log longer than this is purged even if a member still needs it; that member gets a
    /// snapshot. In bytes, at least `snapshot_log_bytes`.
    pub max_log_bytes: u64,
    /// Below this much free disk space the node takes no new work, below half of it no command, and
    /// below a quarter only what keeps the cluster running. In bytes; 0 disables the check.
    pub disk_reserve_bytes: u64,
    /// The memory that determines the sizes of the node's pools; the process can use more. In bytes, at least 256 MiB; without
    /// it, the limit of the process's control group or the machine's memory.
    pub max_memory_bytes: Option<u64>,
    /// The minimum election timeout: a follower that receives no heartbeat for this time, or up to twice as long, stands for
    /// election. A third of it is the heartbeat interval; a round trip must take less. In milliseconds, 300 to 3,000.
    pub election_ms: u64,
    /// A command that takes longer is logged. In milliseconds; 0 logs none.
    pub slow_command_ms: u64,
    /// Calls of WASM actions that run at the same time; `None`: one for each processor that the node may use.
    pub wasm_slots: Option<u32>,
    /// The memory that calls of WASM actions may take together; others wait. In bytes; `None`: a part of the node's
    /// memory.
    pub max_wasm_memory_bytes: Option<u64>,
    /// The collector that receives spans, over OTLP with gRPC. Without it the node makes no spans.
    pub otlp_endpoint: Option<Endpoint>,
    /// The share of traces to keep among those that no caller began.
    pub otlp_sample_ratio: SampleRatio,
    /// Compiles modules in a child process; set by the program that runs the node, not by its configuration. `None`:
    /// the node compiles modules without this trial.
    #[serde(skip)]
    pub module_compiler: Option<ModuleCompiler>,
}

/// The program that tries to compile a module (A9). It reads the module from stdin, writes the bytes of the compiled code
/// to stdout and exits with 0, or writes why the module cannot be compiled and exits with 1. It limits its own processor
/// time and memory, and ends by a signal at the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleCompiler {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigInvalid {
    /// `election_ms` is out of its range.
    #[error("expected `election_ms` to be 300 to 3000, but it is {0}")]
    ElectionMs(u64),
    /// Node ids start at 1.
    #[error("expected `node_id` to be at least 1, but it is 0")]
    NodeIdZero,
    /// `peers` does not contain this node.
    #[error("expected `peers` to name this node, but node {0} is not among them")]
    NodeNotAmongPeers(u64),
    /// Two peers have the same id.
    #[error("expected every peer to have a different id, but two have the id {0}")]
    PeerRepeated(u64),
    /// Two peers have the same address.
    #[error("expected every peer to have a different address, but two have {0}")]
    PeerAddressRepeated(String),
    /// An item of `peers` is not `ID=HOST:PORT`.
    #[error("expected each of `peers` to be ID=HOST:PORT, but one is {0:?}")]
    PeerMalformed(String),
    /// A value is not `HOST:PORT`.
    #[error("expected `{key}` to be HOST:PORT, but it is {found:?}")]
    Address {
        /// The configuration key.
        key: &'static str,
        /// The configured value.
        found: String,
    },
    /// `peers` and `join` exclude each other: a first member does not join.
    #[error("expected either `peers` or `join`, but both are given")]
    PeersAndJoin,
    /// A non-loopback address without TLS.
    #[error("expected `{key}` to be a loopback address, but it is {found}")]
    NotLoopback {
        /// The configuration key.
        key: &'static str,
        /// The configured address.
        found: SocketAddr,
    },
    /// A non-loopback address of a node that would form an open cluster.
    #[error(
        "expected `{key}` to be a loopback address, since `access` is `open`, but it is {found}"
    )]
    OpenNotLoopback {
        /// The configuration key.
        key: &'static str,
        /// The configured address.
        found: SocketAddr,
    },
    /// Clients cannot present a certificate, because the node does not use TLS.
    #[error(
        "expected `tls_cert`, `tls_key` and `tls_ca`, because `client_certificates` is `required`, but they are not given"
    )]
    ClientCertificatesWithoutTls,
    /// The issuers of tokens are invalid.
    #[error(transparent)]
    Oidc(#[from] OidcConfigInvalid),
    /// Only some of the three TLS files are configured.
    #[error("expected `tls_cert`, `tls_key` and `tls_ca` together, but `{missing}` is not given")]
    TlsIncomplete {
        /// The key that is missing.
        missing: &'static str,
    },
    /// The files for peers need those for clients.
    #[error(
        "expected `tls_cert`, `tls_key` and `tls_ca`, because `{key}` is given, but they are not"
    )]
    PeerTlsWithoutTls {
        /// The key that is given.
        key: &'static str,
    },
    /// Only one of certificate and key is configured for peers.
    #[error("expected `tls_peer_cert` and `tls_peer_key` together, but `{missing}` is not given")]
    PeerTlsIncomplete {
        /// The key that is missing.
        missing: &'static str,
    },
    /// Clients need a reachable address: `listen` is a wildcard and `advertise` is not set.
    #[error(
        "expected `advertise`, since `listen` is {0}, which names no host, but it is not given"
    )]
    AdvertiseMissing(SocketAddr),
    /// The data directory is empty text.
    #[error("expected `data_dir` to name a directory, but it is empty")]
    DataDirEmpty,
    /// Not a number of slots that a worker can have.
    #[error("expected `wasm_slots` from 1 to {SLOTS_MAX}, but it is {0}")]
    WasmSlots(u32),
    /// Not even an action with the default limits could be called.
    #[error(
        "expected `max_wasm_memory_bytes` to be at least {WASM_MEMORY_BYTES_MIN}, which a call \
         with the default limits may take, but it is {0}"
    )]
    WasmMemory(u64),
    /// The log would be purged before a snapshot covers it.
    #[error(
        "expected `max_log_bytes` to be at least `snapshot_log_bytes`, and both to be above 0, \
         but they are {max_log_bytes} and {snapshot_log_bytes}"
    )]
    LogBytes {
        /// The configured value.
        snapshot_log_bytes: u64,
        /// The configured value.
        max_log_bytes: u64,
    },
    /// The node has too little memory for any request.
    #[error("expected `max_memory_bytes` to be at least {MEMORY_BYTES_MIN}, but it is {0}")]
    MemoryBytes(u64),
}

impl Default for ServerConfig {
    fn default() -> Self {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            node_id: 1,
            listen: loopback(9000),
            http_listen: loopback(9002),
            peer_listen: loopback(9001),
            admin_listen: None,
            advertise: None,
            data_dir: PathBuf::from("flo-data"),
            peers: Vec::new(),
            join: None,
            peer_names: Vec::new(),
            access: AccessMode::Closed,
            bootstrap_token_file: None,
            keyring_file: None,
            client_certificates: ClientCertificates::Optional,
            oidc: Vec::new(),
            require_token: false,
            metrics_public: false,
            insecure: false,
            tls_cert: None,
            tls_key: None,
            tls_ca: None,
            tls_peer_cert: None,
            tls_peer_key: None,
            tls_peer_ca: None,
            snapshot_log_bytes: Tuning::default().snapshot_log_bytes,
            max_log_bytes: Tuning::default().max_log_bytes,
            disk_reserve_bytes: Tuning::default().disk_reserve_bytes,
            max_memory_bytes: None,
            election_ms: 300,
            slow_command_ms: 1_000,
            wasm_slots: None,
            max_wasm_memory_bytes: None,
            otlp_endpoint: None,
            otlp_sample_ratio: SampleRatio::ALL,
            module_compiler: None,
        }
    }
}

impl ServerConfig {
    /// All configuration keys except `oidc`, which only the file has. The file and the flags use these names; environment variables use
    /// them in capitals with the prefix `FLO_`.
    pub const KEYS: [&str; 32] = [
        "node_id",
        "listen",
        "http_listen",
        "peer_listen",
        "admin_listen",
        "advertise",
        "data_dir",
        "peers",
        "join",
        "peer_names",
        "access",
        "bootstrap_token_file",
        "client_certificates",
        "require_token",
        "metrics_public",
        "insecure",
        "tls_cert",
        "tls_key",
        "tls_ca",
        "tls_peer_cert",
        "tls_peer_key",
        "tls_peer_ca",
        "snapshot_log_bytes",
        "max_log_bytes",
        "disk_reserve_bytes",
        "max_memory_bytes",
        "election_ms",
        "slow_command_ms",
        "wasm_slots",
        "max_wasm_memory_bytes",
        "otlp_endpoint",
        "otlp_sample_ratio",
    ];

    /// Validates the configuration across fields.
    ///
    /// # Errors
    /// [`ConfigInvalid`] names the first error.
    pub fn validate(&self) -> Result<(), ConfigInvalid> {
        if self.node_id == 0 {
            return Err(ConfigInvalid::NodeIdZero);
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(ConfigInvalid::DataDirEmpty);
        }
        self.check_log()?;
        self.check_election()?;
        self.check_memory()?;
        self.check_wasm()?;
        self.check_peers()?;
        self.check_tls()?;
        oidc::validate(&self.oidc)?;
        self.check_addresses()
    }

    /// The addresses of the first members by id; only this node if `peers` is not set.
    pub(crate) fn members(&self) -> BTreeMap<u64, String> {
        if self.peers.is_empty() {
            return BTreeMap::from([(self.node_id, self.peer_listen.to_string())]);
        }
        self.peers
            .iter()
            .map(|peer| (peer.node_id, peer.address.clone()))
            .collect()
    }

    /// How long a follower hears nothing from a leader before it may stand for election.
    pub(crate) fn election(&self) -> Duration {
        Duration::from_millis(self.election_ms)
    }

    /// A command that takes longer is logged; zero: none is.
    pub(crate) fn slow_command(&self) -> Duration {
        Duration::from_millis(self.slow_command_ms)
    }

    /// The first key and address, if any, at which callers from other machines may reach the node.
    pub(crate) fn beyond_loopback(&self) -> Option<(&'static str, SocketAddr)> {
        let listens = [
            ("listen", Some(self.listen)),
            ("http_listen", Some(self.http_listen)),
            ("peer_listen", Some(self.peer_listen)),
            ("admin_listen", self.admin_listen),
        ];
        listens
            .into_iter()
            .filter_map(|(key, address)| Some((key, address?)))
            .find(|(_, address)| !address.ip().is_loopback())
    }

    /// The hosts that peers use to reach the node, each with the key that configures it.
    pub(crate) fn peer_hosts(&self) -> Vec<(&'static str, String)> {
        let own = self.peers.iter().find(|peer| peer.node_id == self.node_id);
        let host = own.map(|peer| ("peers", host_of(&peer.address).to_owned()));
        host.into_iter().collect()
    }

    /// The hosts that clients use to reach the node, each with the key that configures it.
    pub(crate) fn client_hosts(&self) -> Vec<(&'static str, String)> {
        vec![match &self.advertise {
            Some(advertise) => ("advertise", host_of(advertise).to_owned()),
            None => ("listen", self.listen.ip().to_string()),
        }]
    }

    fn check_peers(&self) -> Result<(), ConfigInvalid> {
        if !self.peers.is_empty() && self.join.is_some() {
            return Err(ConfigInvalid::PeersAndJoin);
        }
        for (position, peer) in self.peers.iter().enumerate() {
            if peer.node_id == 0 {
                return Err(ConfigInvalid::NodeIdZero);
            }
            if self.peers[..position]
                .iter()
                .any(|other| other.node_id == peer.node_id)
            {
                return Err(ConfigInvalid::PeerRepeated(peer.node_id));
            }
            if self.peers[..position]
                .iter()
                .any(|other| other.address == peer.address)
            {
                return Err(ConfigInvalid::PeerAddressRepeated(peer.address.clone()));
            }
            if !is_address(&peer.address) {
                let found = format!("{}={}", peer.node_id, peer.address);
                return Err(ConfigInvalid::PeerMalformed(found));
            }
        }
        if !self.peers.is_empty() && self.peers.iter().all(|peer| peer.node_id != self.node_id) {
            return Err(ConfigInvalid::NodeNotAmongPeers(self.node_id));
        }
        Ok(())
    }

    fn check_log(&self) -> Result<(), ConfigInvalid> {
        let Self {
            snapshot_log_bytes,
            max_log_bytes,
            ..
        } = *self;
        if snapshot_log_bytes > 0 && max_log_bytes >= snapshot_log_bytes {
            return Ok(());
        }
        Err(ConfigInvalid::LogBytes {
            snapshot_log_bytes,
            max_log_bytes,
        })
    }

    fn check_election(&self) -> Result<(), ConfigInvalid> {
        match (Tuning::ELECTION_MIN..=Tuning::ELECTION_MAX).contains(&self.election()) {
            true => Ok(()),
            false => Err(ConfigInvalid::ElectionMs(self.election_ms)),
        }
    }

    fn check_memory(&self) -> Result<(), ConfigInvalid> {
        match self.max_memory_bytes {
            Some(bytes) if bytes < MEMORY_BYTES_MIN => Err(ConfigInvalid::MemoryBytes(bytes)),
            Some(_) | None => Ok(()),
        }
    }

    fn check_wasm(&self) -> Result<(), ConfigInvalid> {
        if let Some(slots) = self.wasm_slots
            && !(1..=SLOTS_MAX).contains(&slots)
        {
            return Err(ConfigInvalid::WasmSlots(slots));
        }
        match self.max_wasm_memory_bytes {
            Some(bytes) if bytes < WASM_MEMORY_BYTES_MIN => Err(ConfigInvalid::WasmMemory(bytes)),
            Some(_) | None => Ok(()),
        }
    }

    fn check_addresses(&self) -> Result<(), ConfigInvalid> {
        if let Some(join) = &self.join {
            check_address("join", join)?;
        }
        match &self.advertise {
            Some(advertise) => check_address("advertise", advertise)?,
            None if self.listen.ip().is_unspecified() => {
                return Err(ConfigInvalid::AdvertiseMissing(self.listen));
            }
            None => {}
        }
        match self.beyond_loopback() {
            Some(_) if self.insecure => Ok(()),
            Some((key, found)) if self.tls_files().is_none() => {
                Err(ConfigInvalid::NotLoopback { key, found })
            }
            Some((key, found)) if self.access == AccessMode::Open => {
                Err(ConfigInvalid::OpenNotLoopback { key, found })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl ConfigInvalid {
    /// What to do about it, unless that is obvious.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NodeNotAmongPeers(_) => Some(
                "`peers` is the same list on every first member; a node that joins later uses \
                 `join`",
            ),
            Self::AdvertiseMissing(_) => {
                Some("`advertise` is the HOST:PORT at which clients reach the node")
            }
            Self::PeersAndJoin => {
                Some("a first member has `peers`, a node that joins later has `join`")
            }
            Self::NotLoopback { .. } => Some(
                "configure certificates with `tls_cert`, `tls_key` and `tls_ca`, or pass `--insecure` if the network is \
                 trusted: tokens then travel in plain text, and an open cluster gives every caller full control",
            ),
            Self::OpenNotLoopback { .. } => Some(
                "remove `access`, which only a new cluster reads; listen on loopback addresses; or pass `--insecure` to give \
                 full control to every caller that can reach the node",
            ),
            Self::TlsIncomplete { .. }
            | Self::PeerTlsIncomplete { .. }
            | Self::PeerTlsWithoutTls { .. }
            | Self::ClientCertificatesWithoutTls => {
                Some("`flo cert dev DIR` makes all three files for a test cluster")
            }
            Self::NodeIdZero
            | Self::PeerRepeated(_)
            | Self::PeerAddressRepeated(_)
            | Self::PeerMalformed(_)
            | Self::Address { .. }
            | Self::DataDirEmpty
            | Self::Oidc(_)
            | Self::WasmSlots(_)
            | Self::WasmMemory(_)
            | Self::LogBytes { .. } => None,
            Self::ElectionMs(_) => {
                Some("a round trip between nodes must take less than a third of it")
            }
            Self::MemoryBytes(_) => {
                Some("without it, the node takes the limit of its control group or machine")
            }
        }
    }
}

fn client_certificates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ClientCertificates, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "optional" => Ok(ClientCertificates::Optional),
        "required" => Ok(ClientCertificates::Required),
        other => Err(D::Error::custom(format!(
            "expected `client_certificates` to be `optional` or `required`, but it is {other:?}"
        ))),
    }
}

fn access_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AccessMode, D::Error> {
    let name = String::deserialize(deserializer)?;
    AccessMode::from_name(&name).ok_or_else(|| {
        D::Error::custom(format!(
            "expected `access` to be `open` or `closed`, but it is {name:?}"
        ))
    })
}

fn check_address(key: &'static str, text: &str) -> Result<(), ConfigInvalid> {
    if is_address(text) {
        return Ok(());
    }
    Err(ConfigInvalid::Address {
        key,
        found: text.to_owned(),
    })
}

/// Whether a text is a `host:port`.
pub(crate) fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !host.contains(|c: char| c.is_whitespace() || c == '/' || c == '=')
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: serde_json::Value) -> Result<ServerConfig, serde_json::Error> {
        serde_json::from_value(value)
    }

    fn fault(value: serde_json::Value) -> String {
        parse(value)
            .unwrap()
            .validate()
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_single_node_needs_nothing() {
        let config = parse(json!({})).unwrap();
        assert_eq!(config, ServerConfig::default());
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(
            config.members(),
            BTreeMap::from([(1, "127.0.0.1:9001".to_owned())])
        );
    }

    #[test]
    fn every_key_is_known_and_no_other() {
        for key in ServerConfig::KEYS {
            let error = parse(json!({key: {"x": 1}})).unwrap_err().to_string();
            assert!(!error.contains("unknown field"), "{key}: {error}");
        }
        let error = parse(json!({"port": 1})).unwrap_err().to_string();
        for key in ServerConfig::KEYS {
            assert!(error.contains(&format!("`{key}`")), "{error}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        let cases = [
            (json!({"node_id": 0}), "at least 1"),
            (
                json!({"snapshot_log_bytes": 2, "max_log_bytes": 1}),
                "at least `snapshot_log_bytes`",
            ),
            (
                json!({"election_ms": 299}),
                "`election_ms` to be 300 to 3000",
            ),
            (json!({"election_ms": 3_001}), "but it is 3001"),
            (json!({"wasm_slots": 0}), "`wasm_slots` from 1 to 10000"),
            (json!({"wasm_slots": 10_001}), "but it is 10001"),
            (
                json!({"max_wasm_memory_bytes": 1 << 20}),
                "which a call with the default limits may take",
            ),
            (
                json!({"node_id": 3, "peers": "1=a:1,2=b:1"}),
                "node 3 is not among them",
            ),
            (json!({"peers": "1=a:1,1=b:1"}), "two have the id 1"),
            (json!({"peers": "1=a:1,2=b:1,3=a:1"}), "two have a:1"),
            (
                json!({"peers": "1=a"}),
                "to be ID=HOST:PORT, but one is \"1=a\"",
            ),
            (json!({"peers": "1=a:1", "join": "b:1"}), "both are given"),
            (json!({"join": "b:0"}), "`join` to be HOST:PORT"),
            (
                json!({"advertise": "http://a:1"}),
                "`advertise` to be HOST:PORT",
            ),
            (
                json!({"listen": "0.0.0.0:9000", "insecure": true}),
                "names no host",
            ),
            (
                json!({"peer_listen": "10.0.0.1:9001"}),
                "`peer_listen` to be a loopback address",
            ),
            (json!({"data_dir": ""}), "`data_dir`"),
            (json!({"max_memory_bytes": 1}), "at least 268435456"),
            (
                json!({"client_certificates": "required"}),
                "because `client_certificates` is `required`",
            ),
            (
                json!({"tls_cert": "a", "tls_ca": "b"}),
                "`tls_key` is not given",
            ),
            (
                json!({"tls_peer_ca": "a"}),
                "because `tls_peer_ca` is given",
            ),
            (
                json!({"tls_cert": "a", "tls_key": "b", "tls_ca": "c", "tls_peer_key": "d"}),
                "`tls_peer_cert` is not given",
            ),
        ];
        for (value, expected) in cases {
            let found = fault(value.clone());
            assert!(found.contains(expected), "{value}: {found}");
        }
    }

    #[test]
    fn a_node_with_certificates_may_be_reached_from_elsewhere() {
        let value = json!({
            "listen": "0.0.0.0:9000", "peer_listen": "0.0.0.0:9001", "advertise": "node-1:9000",
            "peers": "1=[fd00::1]:9001,2=node-2:9001",
            "tls_cert": "node.pem", "tls_key": "node-key.pem", "tls_ca": "ca.pem",
        });
        assert_eq!(fault(value.clone()), "");
        let config = parse(value).unwrap();
        assert_eq!(config.peer_hosts(), [("peers", "fd00::1".to_owned())]);
        assert_eq!(config.client_hosts(), [("advertise", "node-1".to_owned())]);
    }

    #[test]
    fn an_open_node_beyond_loopback_requires_insecure() {
        let mut value = json!({
            "listen": "10.0.0.1:9000", "access": "open",
            "tls_cert": "node.pem", "tls_key": "node-key.pem", "tls_ca": "ca.pem",
        });
        let found = fault(value.clone());
        assert!(found.contains("`access` is `open`"), "{found}");
        value["insecure"] = json!(true);
        assert_eq!(fault(value), "");
    }

    #[test]
    fn an_insecure_node_may_be_reached_from_elsewhere() {
        let value = json!({
            "listen": "0.0.0.0:9000", "peer_listen": "0.0.0.0:9001", "advertise": "node-1:9000",
            "peers": "1=node-1:9001,2=[fd00::2]:9001", "insecure": true,
        });
        assert_eq!(fault(value), "");
    }
}
