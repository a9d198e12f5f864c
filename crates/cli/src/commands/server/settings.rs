//! What a node is told about itself: by flags, variables and a file.

use crate::code::Code;
use crate::failure::Failure;
use clap::Args;
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use flotilla_server::ServerConfig;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The keys of a server's configuration as flags; what is not given is absent.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub(super) struct Settings {
    /// This node's id, from 1; never given to another node [default: 1]
    #[arg(long, env = "FLO_NODE_ID", hide_env_values = true, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<u64>,

    /// Where to listen for clients [default: 127.0.0.1:9000]
    #[arg(
        long,
        env = "FLO_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,

    /// Where HTTP is served: reports of accepted tasks [default: 127.0.0.1:9002]
    #[arg(
        long,
        env = "FLO_HTTP_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    http_listen: Option<SocketAddr>,

    /// Where to listen for the other nodes [default: 127.0.0.1:9001]
    #[arg(
        long,
        env = "FLO_PEER_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_listen: Option<SocketAddr>,

    /// What clients are told to connect to [default: the address to listen on]
    #[arg(
        long,
        env = "FLO_ADVERTISE",
        hide_env_values = true,
        value_name = "HOST:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    advertise: Option<String>,

    /// Where the node keeps its data [default: flo-data]
    #[arg(long, env = "FLO_DATA_DIR", hide_env_values = true, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,

    /// Every first member by id and peer address, this one included; the same list on each node
    /// [default: this node alone]
    #[arg(
        long,
        env = "FLO_PEERS",
        hide_env_values = true,
        value_name = "ID=HOST:PORT,…"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<String>,

    /// The peer address of a member, for a node that is not among the first ones; it waits until the
    /// cluster adds it
    #[arg(
        long,
        env = "FLO_JOIN",
        hide_env_values = true,
        value_name = "HOST:PORT"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    join: Option<String>,

    /// Listen beyond loopback although nothing is encrypted
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

    /// The node's certificate, as a PEM file: TLS for clients, nodes and HTTP. Those who connect must have
    /// certificates, too, except over HTTP
    #[arg(
        long,
        env = "FLO_TLS_CERT",
        hide_env_values = true,
        value_name = "FILE"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert: Option<PathBuf>,

    /// The key of that certificate, as a PEM file
    #[arg(long, env = "FLO_TLS_KEY", hide_env_values = true, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_key: Option<PathBuf>,

    /// Trust nodes and clients that an authority in this PEM file has signed
    #[arg(long, env = "FLO_TLS_CA", hide_env_values = true, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_ca: Option<PathBuf>,

    /// Make a snapshot after so many bytes of log, or at 60 % of them or more, by the node's id, so that nodes do
    /// not do it together [default: 64 MiB]
    #[arg(
        long,
        env = "FLO_SNAPSHOT_LOG_BYTES",
        hide_env_values = true,
        value_name = "BYTES"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_log_bytes: Option<u64>,

    /// Cut a log longer than this even if a node that is away still needs it; that node gets a
    /// snapshot [default: 512 MiB]
    #[arg(
        long,
        env = "FLO_LOG_BYTES_MAX",
        hide_env_values = true,
        value_name = "BYTES"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    log_bytes_max: Option<u64>,

    /// Take no new work with less than this free on the disk, no command at all with less than half of
    /// it; 0 takes everything until the disk is full [default: 256 MiB]
    #[arg(
        long,
        env = "FLO_DISK_RESERVE_BYTES",
        hide_env_values = true,
        value_name = "BYTES"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_reserve_bytes: Option<u64>,

    /// Send spans to this collector, over OTLP with gRPC, as http://127.0.0.1:4317 [default: none are made]
    #[arg(
        long,
        env = "FLO_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    otlp_endpoint: Option<String>,

    /// Which part of the traces that no caller has begun is kept, from 0 to 1; the same on each node [default: 1]
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
    /// These settings; where they say nothing those of the file, and else the defaults.
    ///
    /// # Errors
    /// `config_invalid` for a file that cannot be read, an unknown key or a value of a wrong form.
    pub(super) fn over_file(&self, file: Option<&Path>) -> Result<ServerConfig, Failure> {
        let mut figment = Figment::new();
        if let Some(file) = file {
            if !file.is_file() {
                let message = format!("expected a file {}, but there is none", file.display());
                let hint = "a path is looked for from this folder";
                return Err(Failure::new(Code::ConfigInvalid, message).with_hint(hint));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        figment
            .merge(Serialized::defaults(self))
            .extract()
            .map_err(|error| {
                let faults: Vec<String> = error.into_iter().map(|fault| in_words(&fault)).collect();
                let message = format!("expected a valid configuration, but {}", faults.join("; "));
                Failure::new(Code::ConfigInvalid, message)
            })
    }
}

/// What is wrong, at which key and, when it comes from one, in which file. (Left to itself, the
/// library names the place in this program's source for what comes from a flag or a variable.)
fn in_words(fault: &figment::Error) -> String {
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
            insecure: Some(true),
            tls_cert: Some("node.pem".into()),
            tls_key: Some("node-key.pem".into()),
            tls_ca: Some("ca.pem".into()),
            snapshot_log_bytes: Some(1),
            log_bytes_max: Some(2),
            disk_reserve_bytes: Some(3),
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
