//! What a node needs to know before it starts.

mod peer;

pub use peer::Peer;

use crate::tls::TlsFiles;
use flotilla_replica::Tuning;
use flotilla_trace::{Endpoint, SampleRatio};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What a node needs to know before it starts. Every field has the default of a single node on
/// this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The node's id; from 1, never reused.
    pub node_id: u64,
    /// Where gRPC clients are served.
    pub listen: SocketAddr,
    /// Where HTTP is served. Workers are told of it as the host of `advertise` with this port, when
    /// it is on the interface of `listen` or on all of them; else as it stands here.
    pub http_listen: SocketAddr,
    /// Where the other nodes are served.
    pub peer_listen: SocketAddr,
    /// The `host:port` under which clients reach `listen`; `listen` itself when it is not given.
    pub advertise: Option<String>,
    /// Where log and state are kept; made when it is not there.
    pub data_dir: PathBuf,
    /// Every first member, this node included; the same list on each. None: a single node.
    #[serde(deserialize_with = "peer::list")]
    pub peers: Vec<Peer>,
    /// The peer address of a member, for a node that joins later.
    pub join: Option<String>,
    /// Whether other machines may connect although nothing is encrypted.
    pub insecure: bool,
    /// The node's certificate, for clients, peers and HTTP, with those between it and the authority: a
    /// PEM file, looked at again while the node runs. All three files of TLS, or none.
    pub tls_cert: Option<PathBuf>,
    /// The key of `tls_cert`: a PEM file.
    pub tls_key: Option<PathBuf>,
    /// The authorities that have signed the certificates of nodes and clients: a PEM file.
    pub tls_ca: Option<PathBuf>,
    /// A snapshot is made after so many bytes of log, or at 60 % of them or more, by the node's id.
    pub snapshot_log_bytes: u64,
    /// A log longer than this is cut even if a member still needs it; that member gets a snapshot.
    /// In bytes, not below `snapshot_log_bytes`.
    pub log_bytes_max: u64,
    /// With less free than this on the disk no new work is taken, with less than half of it no command, and with less
    /// than a quarter nothing but what keeps the cluster going. In bytes; 0: the disk is not looked at.
    pub disk_reserve_bytes: u64,
    /// The collector that spans are sent to, over OTLP with gRPC; none are made without it.
    pub otlp_endpoint: Option<Endpoint>,
    /// How many of the traces that no caller has begun are kept.
    pub otlp_sample_ratio: SampleRatio,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigInvalid {
    /// Node ids begin with 1.
    #[error("expected `node_id` to be at least 1, but it is 0")]
    NodeIdZero,
    /// The node is not one of its peers.
    #[error("expected `peers` to name this node, but node {0} is not among them")]
    NodeNotAmongPeers(u64),
    /// Two peers have one id.
    #[error("expected every peer to have an id of its own, but two have the id {0}")]
    PeerRepeated(u64),
    /// Two peers have one address.
    #[error("expected every peer to have an address of its own, but two have {0}")]
    PeerAddressRepeated(String),
    /// Something that should be a peer is none.
    #[error("expected each of `peers` to be ID=HOST:PORT, but one is {0:?}")]
    PeerMalformed(String),
    /// Something that should be an address is none.
    #[error("expected `{key}` to be HOST:PORT, but it is {found:?}")]
    Address {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        found: String,
    },
    /// A first member does not join.
    #[error("expected either `peers` or `join`, but both are given")]
    PeersAndJoin,
    /// Other machines could connect, and nothing is encrypted.
    #[error("expected `{key}` to be a loopback address, but it is {found}")]
    NotLoopback {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        found: SocketAddr,
    },
    /// Some of the files of TLS are named.
    #[error("expected `tls_cert`, `tls_key` and `tls_ca` together, but `{missing}` is not given")]
    TlsIncomplete {
        /// The key that is missing.
        missing: &'static str,
    },
    /// Clients cannot be told where the node is.
    #[error(
        "expected `advertise`, since `listen` is {0}, which names no machine, but it is not given"
    )]
    AdvertiseMissing(SocketAddr),
    /// No place for the data.
    #[error("expected `data_dir` to name a directory, but it is empty")]
    DataDirEmpty,
    /// The log would be cut before a snapshot could stand in for it.
    #[error(
        "expected `log_bytes_max` to be at least `snapshot_log_bytes` and that above 0, but they are \
         {log_bytes_max} and {snapshot_log_bytes}"
    )]
    LogBytes {
        /// As configured.
        snapshot_log_bytes: u64,
        /// As configured.
        log_bytes_max: u64,
    },
}

impl Default for ServerConfig {
    fn default() -> Self {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            node_id: 1,
            listen: loopback(9000),
            http_listen: loopback(9002),
            peer_listen: loopback(9001),
            advertise: None,
            data_dir: PathBuf::from("flo-data"),
            peers: Vec::new(),
            join: None,
            insecure: false,
            tls_cert: None,
            tls_key: None,
            tls_ca: None,
            snapshot_log_bytes: Tuning::default().snapshot_log_bytes,
            log_bytes_max: Tuning::default().log_bytes_max,
            disk_reserve_bytes: Tuning::default().disk_reserve_bytes,
            otlp_endpoint: None,
            otlp_sample_ratio: SampleRatio::ALL,
        }
    }
}

impl ServerConfig {
    /// The names of all keys: those of the file, the flags and, in capitals behind `FLO_`, the
    /// environment.
    pub const KEYS: [&str; 17] = [
        "node_id",
        "listen",
        "http_listen",
        "peer_listen",
        "advertise",
        "data_dir",
        "peers",
        "join",
        "insecure",
        "tls_cert",
        "tls_key",
        "tls_ca",
        "snapshot_log_bytes",
        "log_bytes_max",
        "disk_reserve_bytes",
        "otlp_endpoint",
        "otlp_sample_ratio",
    ];

    /// Checks what a single field cannot say.
    ///
    /// # Errors
    /// [`ConfigInvalid`] names the first fault.
    pub fn validate(&self) -> Result<(), ConfigInvalid> {
        if self.node_id == 0 {
            return Err(ConfigInvalid::NodeIdZero);
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(ConfigInvalid::DataDirEmpty);
        }
        self.check_log()?;
        self.check_peers()?;
        self.check_tls()?;
        self.check_addresses()
    }

    /// The first members by id; this node alone when no others are named.
    pub(crate) fn members(&self) -> BTreeMap<u64, String> {
        if self.peers.is_empty() {
            return BTreeMap::from([(self.node_id, self.peer_listen.to_string())]);
        }
        self.peers
            .iter()
            .map(|peer| (peer.node_id, peer.address.clone()))
            .collect()
    }

    /// The files of TLS, when the node is to have it.
    pub(crate) fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            cert: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            ca: self.tls_ca.clone()?,
        })
    }

    /// The hosts under which others are told to connect to the node, with the keys that say so.
    pub(crate) fn own_hosts(&self) -> Vec<(&'static str, String)> {
        let own = self.peers.iter().find(|peer| peer.node_id == self.node_id);
        let for_peers = own.map(|peer| ("peers", host(&peer.address).to_owned()));
        let for_clients = match &self.advertise {
            Some(advertise) => ("advertise", host(advertise).to_owned()),
            None => ("listen", self.listen.ip().to_string()),
        };
        for_peers.into_iter().chain([for_clients]).collect()
    }

    fn check_tls(&self) -> Result<(), ConfigInvalid> {
        let files = [
            ("tls_cert", &self.tls_cert),
            ("tls_key", &self.tls_key),
            ("tls_ca", &self.tls_ca),
        ];
        let is_plain = files.iter().all(|(_, file)| file.is_none());
        match files.into_iter().find(|(_, file)| file.is_none()) {
            Some((missing, _)) if !is_plain => Err(ConfigInvalid::TlsIncomplete { missing }),
            Some(_) | None => Ok(()),
        }
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
            log_bytes_max,
            ..
        } = *self;
        if snapshot_log_bytes > 0 && log_bytes_max >= snapshot_log_bytes {
            return Ok(());
        }
        Err(ConfigInvalid::LogBytes {
            snapshot_log_bytes,
            log_bytes_max,
        })
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
        let listens = [
            ("listen", self.listen),
            ("http_listen", self.http_listen),
            ("peer_listen", self.peer_listen),
        ];
        match listens
            .into_iter()
            .find(|(_, address)| !address.ip().is_loopback())
        {
            Some((key, found)) if !self.insecure && self.tls_files().is_none() => {
                Err(ConfigInvalid::NotLoopback { key, found })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl ConfigInvalid {
    /// What to do about it, where there is something beyond the obvious.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NodeNotAmongPeers(_) => {
                Some("`peers` is the same list on every first member; a later node uses `join`")
            }
            Self::PeersAndJoin => Some("a first member has `peers`, a later node has `join`"),
            Self::NotLoopback { .. } => Some(
                "give the node certificates with `tls_cert`, `tls_key` and `tls_ca`, or say `--insecure` where \
                 the network itself is trusted",
            ),
            Self::TlsIncomplete { .. } => {
                Some("`flo cert dev DIR` makes all three, for a cluster that is tried out")
            }
            Self::NodeIdZero
            | Self::PeerRepeated(_)
            | Self::PeerAddressRepeated(_)
            | Self::PeerMalformed(_)
            | Self::Address { .. }
            | Self::AdvertiseMissing(_)
            | Self::DataDirEmpty
            | Self::LogBytes { .. } => None,
        }
    }
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

/// The host of a `host:port`, without the brackets of an IPv6 address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
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
                json!({"snapshot_log_bytes": 2, "log_bytes_max": 1}),
                "at least `snapshot_log_bytes`",
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
                "names no machine",
            ),
            (
                json!({"peer_listen": "10.0.0.1:9001"}),
                "`peer_listen` to be a loopback address",
            ),
            (json!({"data_dir": ""}), "`data_dir`"),
            (
                json!({"tls_cert": "a", "tls_ca": "b"}),
                "`tls_key` is not given",
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
        let hosts = parse(value).unwrap().own_hosts();
        let expected = [("peers", "fd00::1"), ("advertise", "node-1")];
        assert_eq!(hosts, expected.map(|(key, host)| (key, host.to_owned())));
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
