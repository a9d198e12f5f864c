//! The configuration of a node, from flags, environment variables and a file.

use crate::byte_count;
use crate::code::Code;
use crate::failure::Failure;
use clap::Args;
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use flotilla_server::ServerConfig;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The server's configuration keys as flags; a flag that is not given is absent.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub(super) struct Settings {
    /// Id of this node, from 1; never reuse the id of another node [default: 1]
    #[arg(long, env = "FLO_NODE_ID", hide_env_values = true, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<u64>,

    /// Address to listen on for clients [default: 127.0.0.1:9000]
    #[arg(
        long,
        env = "FLO_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,

    /// Address to serve HTTP on: the HTTP API, probes and metrics [default: 127.0.0.1:9002]
    #[arg(
        long,
        env = "FLO_HTTP_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    http_listen: Option<SocketAddr>,

    /// Address to listen on for other nodes [default: 127.0.0.1:9001]
    #[arg(
        long,
        env = "FLO_PEER_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_listen: Option<SocketAddr>,

    /// Address that clients are to connect to [default: the address of --listen]
    #[arg(
        long,
        env = "FLO_ADVERTISE",
        hide_env_values = true,
        value_name = "HOST:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    advertise: Option<String>,

    /// Data directory of the node [default: flo-data]
    #[arg(long, env = "FLO_DATA_DIR", hide_env_values = true, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,

    /// Ids and peer addresses of all first members, including this node; the same list on each node
    /// [default: this node alone]
    #[arg(
        long,
        env = "FLO_PEERS",
        hide_env_values = true,
        value_name = "ID=HOST:PORT,…"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<String>,

    /// Peer address of a member to join, for a node that is not a first member; the node waits
    /// until it is added
    #[arg(
        long,
        env = "FLO_JOIN",
        hide_env_values = true,
        value_name = "HOST:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    join: Option<String>,

    /// Hosts of members that neither `--peers` nor `--join` names; with TLS, members accept each other's calls by the
    /// hosts in their certificates
    #[arg(
        long,
        env = "FLO_PEER_NAMES",
        hide_env_values = true,
        value_name = "HOST,…"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_names: Option<String>,

    /// Address that serves operators: probes, metrics and the calls of `flo cluster`, apart from the load of clients
    /// [default: none]
    #[arg(
        long,
        env = "FLO_ADMIN_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_listen: Option<String>,

    /// Access mode of a new cluster: `closed` if callers need a token, or `open`. Set the same mode on all first members. Ignored
    /// once the cluster is formed: use `flo auth enable` or `flo auth disable` [default: closed]
    #[arg(long, env = "FLO_ACCESS", hide_env_values = true, value_name = "MODE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<String>,

    /// File with the bootstrap token of a new cluster, from `flo token generate`; the same on all first members. A single node
    /// generates the token itself, in the file `bootstrap-token` of its data directory
    #[arg(
        long,
        env = "FLO_BOOTSTRAP_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap_token_file: Option<PathBuf>,

    /// File with the secret keys that all nodes share, from `flo keyring generate`. A closed cluster needs it, the same on all
    /// nodes. A single node generates the keys itself, in the file `keyring` of its data directory
    #[arg(
        long,
        env = "FLO_KEYRING_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    keyring_file: Option<PathBuf>,

    /// Client certificates with TLS: `optional` if a token suffices, or `required` if callers need one even with a token
    /// [default: optional]
    #[arg(
        long,
        env = "FLO_CLIENT_CERTIFICATES",
        hide_env_values = true,
        value_name = "WHEN"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificates: Option<String>,

    /// Require a token or a client certificate for every call at this node, even if the cluster is open. While a voter has this
    /// setting, `flo auth disable` is refused
    #[arg(
        long,
        env = "FLO_REQUIRE_TOKEN",
        hide_env_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    require_token: Option<bool>,

    /// Serve `/metrics` without a token, even if the cluster is closed
    #[arg(
        long,
        env = "FLO_METRICS_PUBLIC",
        hide_env_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics_public: Option<bool>,

    /// Allow non-loopback addresses without TLS, or with the access mode `open`
    #[arg(
        long,
        env = "FLO_INSECURE",
        hide_env_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    insecure: Option<bool>,

    /// Certificate of the node, as a PEM file: enables TLS for clients, peers and HTTP; clients and
    /// peers, but not HTTP clients, must then present certificates, too
    #[arg(
        long,
        env = "FLO_TLS_CERT",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert: Option<PathBuf>,

    /// Key of that certificate, as a PEM file
    #[arg(long, env = "FLO_TLS_KEY", hide_env_values = true, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_key: Option<PathBuf>,

    /// PEM file with the authorities whose certificates the node trusts
    #[arg(long, env = "FLO_TLS_CA", hide_env_values = true, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_ca: Option<PathBuf>,

    /// Certificate of the node for its peers, as a PEM file, if it is another
    #[arg(
        long,
        env = "FLO_TLS_PEER_CERT",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_peer_cert: Option<PathBuf>,

    /// Key of that certificate, as a PEM file
    #[arg(
        long,
        env = "FLO_TLS_PEER_KEY",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_peer_key: Option<PathBuf>,

    /// PEM file with the authorities that sign the certificates of nodes, if they are others
    #[arg(
        long,
        env = "FLO_TLS_PEER_CA",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_peer_ca: Option<PathBuf>,

    /// Snapshot after this many bytes of log; each node uses 60–100 % of it, so that snapshots are
    /// staggered [default: 64 MiB]
    #[arg(
        long,
        env = "FLO_SNAPSHOT_LOG_BYTES",
        hide_env_values = true,
        value_name = "BYTES",
        value_parser = byte_count::parse
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_log_bytes: Option<u64>,

    /// Maximum log size in bytes; beyond it the log is purged even if a node still needs it, and
    /// that node receives a snapshot [default: 512 MiB]
    #[arg(
        long,
        env = "FLO_MAX_LOG_BYTES",
        hide_env_values = true,
        value_name = "BYTES",
        value_parser = byte_count::parse
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_log_bytes: Option<u64>,

    /// Free disk space to keep: below this, the node rejects new work as leader; below half of it,
    /// all commands; below a quarter, it stores no new commands; 0 disables the check
    /// [default: 256 MiB]
    #[arg(
        long,
        env = "FLO_DISK_RESERVE_BYTES",
        hide_env_values = true,
        value_name = "BYTES",
        value_parser = byte_count::parse
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_reserve_bytes: Option<u64>,

    /// Memory that determines the parts of requests, reads, streams, queued commands and actions; the
    /// process can use more [default: the limit of the control group, or the machine's memory]
    #[arg(
        long,
        env = "FLO_MAX_MEMORY_BYTES",
        hide_env_values = true,
        value_name = "BYTES",
        value_parser = byte_count::parse
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_memory_bytes: Option<u64>,

    /// Memory for all WASM calls in bytes; calls wait until there is room for them [default: a
    /// part of the node's memory; see Sizing]
    #[arg(
        long,
        env = "FLO_MAX_WASM_MEMORY_BYTES",
        hide_env_values = true,
        value_name = "BYTES",
        value_parser = byte_count::parse
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_wasm_memory_bytes: Option<u64>,

    /// WASM calls that run concurrently [default: one per processor that the node may use]
    #[arg(long, env = "FLO_WASM_SLOTS", hide_env_values = true, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    wasm_slots: Option<u32>,

    /// Minimum election timeout in milliseconds, 300 to 3000; a round trip between nodes must take
    /// less than a third of it [default: 300]
    #[arg(
        long,
        env = "FLO_ELECTION_MS",
        hide_env_values = true,
        value_name = "MS"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    election_ms: Option<u64>,

    /// Log commands that take longer than this many milliseconds; 0 logs none [default: 1000]
    #[arg(
        long,
        env = "FLO_SLOW_COMMAND_MS",
        hide_env_values = true,
        value_name = "MS"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_command_ms: Option<u64>,

    /// OTLP/gRPC collector to export spans to, such as http://127.0.0.1:4317 [default: no spans]
    #[arg(
        long,
        env = "FLO_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    otlp_endpoint: Option<String>,

    /// Fraction of the traces started by the cluster that is kept, from 0 to 1; the same on each
    /// node [default: 1]
    #[arg(
        long,
        env = "FLO_OTLP_SAMPLE_RATIO",
        hide_env_values = true,
        value_name = "PART"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    otlp_sample_ratio: Option<f64>,
}

impl Settings {
    /// Merges the settings: flags and variables override the file, which overrides the defaults.
    ///
    /// # Errors
    /// `config_invalid` if the file cannot be read, a key is unknown or a value is malformed.
    pub(super) fn over_file(&self, file: Option<&Path>) -> Result<ServerConfig, Failure> {
        let mut figment = Figment::new();
        if let Some(file) = file {
            if !file.is_file() {
                let message = format!("expected a file {}, but it does not exist", file.display());
                let hint = "relative paths start at the current directory";
                return Err(Failure::new(Code::ConfigInvalid, message).with_hint(hint));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        figment
            .merge(Serialized::defaults(self))
            .extract()
            .map_err(|error| {
                let faults: Vec<String> = error.into_iter().map(|fault| describe(&fault)).collect();
                let message = format!("expected a valid configuration, but {}", faults.join("; "));
                Failure::new(Code::ConfigInvalid, message)
            })
    }
}

/// Describes a fault, with its key and, if it comes from a file, the file. (For flags and variables
/// the library itself would report a location in this program's source.)
fn describe(fault: &figment::Error) -> String {
    let mut words = String::new();
    if !fault.path.is_empty() {
        words.push_str(&format!("`{}`: ", fault.path.join(".")));
    }
    words.push_str(&fault.kind.to_string());
    let source = fault.metadata.as_ref();
    let source = source.and_then(|metadata| metadata.source.as_ref());
    if let Some(file) = source.and_then(|source| source.file_path()) {
        words.push_str(&format!(", in {}", file.display()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output;
    use std::io::Write;

    fn over_text(flags: &Settings, text: &str) -> Result<ServerConfig, Failure> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes())
            .expect("room for a few lines");
        flags.over_file(Some(file.path()))
    }

    fn fault(text: &str) -> String {
        let failure = over_text(&Settings::default(), text).expect_err(text);
        assert_eq!(failure.code(), "config_invalid");
        failure.render(output::Format::Text)
    }

    #[test]
    fn a_flag_goes_before_the_file_and_the_file_before_the_default() {
        let flags = Settings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 1))),
            ..Settings::default()
        };
        let text = "node_id = 2\nlisten = \"127.0.0.1:2\"\ndata_dir = \"d\"\n\
                    peers = [\"1=a:1\", \"2=b:1\"]\n";
        let config = over_text(&flags, text).expect("valid");
        assert_eq!(config.node_id, 2);
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.peer_listen.port(), 9001);
        assert_eq!(config.data_dir, Path::new("d"));
        assert_eq!(config.peers.len(), 2);
    }

    #[test]
    fn every_key_of_the_server_is_a_flag() {
        let flags = Settings {
            node_id: Some(3),
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 1))),
            http_listen: Some(SocketAddr::from(([127, 0, 0, 1], 2))),
            peer_listen: Some(SocketAddr::from(([127, 0, 0, 1], 3))),
            advertise: Some("a:1".to_owned()),
            data_dir: Some("d".into()),
            peers: Some("3=a:3".to_owned()),
            join: Some("b:3".to_owned()),
            client_certificates: Some("required".to_owned()),
            require_token: Some(true),
            metrics_public: Some(true),
            insecure: Some(true),
            tls_cert: Some("node.pem".into()),
            peer_names: Some("node-4".to_owned()),
            access: Some("closed".to_owned()),
            bootstrap_token_file: Some("bootstrap.token".into()),
            keyring_file: Some("keyring".into()),
            admin_listen: Some("127.0.0.1:9003".to_owned()),
            tls_key: Some("node-key.pem".into()),
            tls_ca: Some("ca.pem".into()),
            tls_peer_cert: Some("peer.pem".into()),
            tls_peer_key: Some("peer-key.pem".into()),
            tls_peer_ca: Some("peer-ca.pem".into()),
            snapshot_log_bytes: Some(1),
            max_log_bytes: Some(2),
            disk_reserve_bytes: Some(3),
            max_memory_bytes: Some(1 << 30),
            election_ms: Some(1_500),
            slow_command_ms: Some(500),
            wasm_slots: Some(4),
            max_wasm_memory_bytes: Some(5),
            otlp_endpoint: Some("http://127.0.0.1:4317".to_owned()),
            otlp_sample_ratio: Some(0.5),
        };
        let given = serde_json::to_value(&flags).expect("printable");
        for key in ServerConfig::KEYS {
            assert!(given.get(key).is_some(), "{key}");
        }
        let config = flags.over_file(None).expect("each value has its form");
        assert_eq!(config.peers[0].address, "a:3");
        assert!(config.insecure);
    }

    #[test]
    fn a_fault_of_the_file_is_named() {
        assert!(fault("lisen = \"a:1\"\n").contains("lisen"));
        assert!(fault("node_id = \"one\"\n").contains("node_id"));
        assert!(fault("peers = \"a:1\"\n").contains("peers"));
        assert!(fault("node_id = \n").contains("TOML"));
        let access = fault("access = \"shut\"\n");
        assert!(access.contains("`open` or `closed`"), "{access}");
        let flags = Settings {
            peers: Some("a:1".to_owned()),
            ..Settings::default()
        };
        let failure = flags.over_file(None).expect_err("no peer");
        assert_eq!(
            failure.render(output::Format::Text),
            "error: expected a valid configuration, but `peers`: expected each of `peers` to be \
             ID=HOST:PORT, but one is \"a:1\"\n"
        );
        let missing = Settings::default().over_file(Some(Path::new("no/such/file")));
        assert_eq!(missing.expect_err("missing").code(), "config_invalid");
    }
}
