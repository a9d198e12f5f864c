//! How a client is set up.

use crate::tls::TlsOptions;
use std::time::Duration;

/// What [`Client::connect`](crate::Client::connect) needs to know.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Nodes as `host:port`, any and in any order: one that answers is enough, and the leader is
    /// learnt from its replies. `127.0.0.1:9000` by default.
    pub endpoints: Vec<String>,
    /// The namespace of requests that name none. Empty, the default, leaves it to the server:
    /// `default`, or what a definition itself says.
    pub namespace: String,
    /// With what TLS is spoken. None, the default, for nodes that speak none.
    pub tls: Option<TlsOptions>,
    /// How long a call may take, retries included. 10 s by default.
    pub timeout: Duration,
    /// How long one attempt to connect may take. 2 s by default.
    pub connect_timeout: Duration,
    /// How long a call goes on while not a single node can be connected to. 3 s by default; a
    /// person at a terminal should not wait for the whole timeout to learn that nothing runs there.
    pub unreachable_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            endpoints: vec!["127.0.0.1:9000".to_owned()],
            namespace: String::new(),
            tls: None,
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(2),
            unreachable_timeout: Duration::from_secs(3),
        }
    }
}
