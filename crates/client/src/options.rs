//! The options of a client.

use crate::tls::TlsOptions;
use flotilla_api::token::ApiToken;
use std::time::Duration;

/// The options of [`Client::connect`](crate::Client::connect).
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Nodes as `host:port`, in any order. One that answers is enough; the leader is learned from
    /// its responses. Default: `127.0.0.1:9000`.
    pub endpoints: Vec<String>,
    /// The namespace of requests that do not set one. If empty, the default, the server decides:
    /// `default`, or the namespace that a definition names.
    pub namespace: String,
    /// The TLS files; `None`, the default, for nodes without TLS.
    pub tls: Option<TlsOptions>,
    /// The API token that calls show; `None`, the default, for an open cluster.
    pub token: Option<ApiToken>,
    /// The maximum duration of a call, including retries. Default: 10 s.
    pub timeout: Duration,
    /// The maximum duration of one connection attempt. Default: 2 s.
    pub connect_timeout: Duration,
    /// How long a call is retried while no node can be connected to. Default: 3 s; a person at a
    /// terminal should not wait for the whole timeout to learn that nothing runs there.
    pub unreachable_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            endpoints: vec!["127.0.0.1:9000".to_owned()],
            namespace: String::new(),
            tls: None,
            token: None,
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(2),
            unreachable_timeout: Duration::from_secs(3),
        }
    }
}
