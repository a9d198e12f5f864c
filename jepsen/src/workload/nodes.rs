//! How clients reach the nodes.

use flotilla_api::v1::kv_service_client::KvServiceClient;
use flotilla_client::{ApiToken, Client, ClientError, ClientOptions, TlsOptions, v1};
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

/// How long a client waits for a response. Shorter than most faults, so that some outcomes are unknown.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The same for a node with TLS: no fault blocks its responses for good.
const TIMEOUT_SECURED: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the TLS files are read before they count as invalid: they may be replaced meanwhile.
const READINGS: usize = 3;

/// The nodes as clients reach them.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// Their addresses, as `host:port`.
    pub endpoints: Vec<String>,
    /// Their HTTP addresses, in the same order.
    pub http_addresses: Vec<String>,
    /// The TLS settings, if there are any.
    pub tls: Option<TlsOptions>,
    /// The API token that clients show, if there is one.
    pub token: Option<ApiToken>,
}

impl Nodes {
    /// The same nodes, for clients with a token.
    #[must_use]
    pub fn with_token(self, token: ApiToken) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// The same nodes, starting with another one.
    #[must_use]
    pub fn turned(&self, turn: usize) -> Self {
        let mut turned = self.clone();
        turned.endpoints.rotate_left(turn % self.endpoints.len());
        turned
            .http_addresses
            .rotate_left(turn % self.endpoints.len());
        turned
    }

    /// A client of all nodes, which retries for long. Must be called within a tokio runtime.
    ///
    /// # Panics
    /// When an endpoint is not an address, or the TLS files are invalid.
    #[must_use]
    pub fn client(&self) -> Client {
        let options = ClientOptions {
            endpoints: self.endpoints.clone(),
            tls: self.tls.clone(),
            token: self.token.clone(),
            timeout: TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            ..ClientOptions::default()
        };
        Client::connect(options)
            .expect("the harness knows the nodes' addresses and has made the files")
    }

    /// A client for each node. Must be called within a tokio runtime.
    ///
    /// # Panics
    /// When an endpoint is not an address.
    #[must_use]
    pub fn each(&self) -> Vec<OneNode> {
        let one = |endpoint: &String| match &self.tls {
            None => OneNode::Plain(channel(endpoint)),
            Some(tls) => OneNode::Secured(ClientOptions {
                endpoints: vec![endpoint.clone()],
                tls: Some(tls.clone()),
                timeout: TIMEOUT_SECURED,
                connect_timeout: CONNECT_TIMEOUT,
                ..ClientOptions::default()
            }),
        };
        self.endpoints.iter().map(one).collect()
    }
}

/// A client of one node, which calls it once, without retries.
#[derive(Clone, Debug)]
pub enum OneNode {
    /// Over a connection that stays open.
    Plain(Channel),
    /// Over TLS, with a new connection for each call: it uses the current certificate. The response is that of
    /// this node as long as it gives one.
    Secured(ClientOptions),
}

impl OneNode {
    /// The node's response for a key; that the key does not exist is a response.
    ///
    /// # Errors
    /// When there was no response and that counts as a failed call: a node without TLS may be down.
    pub(super) async fn get_key(
        &self,
        key: &str,
    ) -> Result<v1::GetKeyResponse, Option<ClientError>> {
        let request = v1::GetKeyRequest {
            key: key.to_owned(),
            ..v1::GetKeyRequest::default()
        };
        match self {
            Self::Plain(channel) => plain(channel.clone(), request).await.ok_or(None),
            Self::Secured(options) => secured(options, request).await.map_err(Some),
        }
    }
}

async fn plain(channel: Channel, request: v1::GetKeyRequest) -> Option<v1::GetKeyResponse> {
    let mut client = KvServiceClient::new(channel);
    let mut request = Request::new(request);
    request.set_timeout(TIMEOUT);
    match tokio::time::timeout(TIMEOUT, client.get_key(request)).await {
        Ok(Ok(answer)) => Some(answer.into_inner()),
        Ok(Err(status)) if status.code() == Code::NotFound => Some(v1::GetKeyResponse::default()),
        Ok(Err(_)) | Err(_) => None,
    }
}

async fn secured(
    options: &ClientOptions,
    request: v1::GetKeyRequest,
) -> Result<v1::GetKeyResponse, ClientError> {
    let mut readings = 1;
    loop {
        let answer = match Client::connect(options.clone()) {
            Ok(client) => client.get_key(request.clone()).await,
            Err(error) => Err(error),
        };
        match answer {
            Err(error) if error.code() == "key_not_found" => {
                return Ok(v1::GetKeyResponse::default());
            }
            Err(error) if is_of_files(&error) && readings < READINGS => readings += 1,
            answer => return answer,
        }
    }
}

/// Whether the TLS files of this side do not match. A client reads the certificate and then the key: if both are
/// replaced in between, they do not match.
fn is_of_files(error: &ClientError) -> bool {
    error.code() == "tls_invalid" || error.message().contains("the TLS files are invalid")
}

fn channel(endpoint: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{endpoint}"));
    let endpoint = endpoint.expect("the harness knows the nodes' addresses");
    endpoint.connect_timeout(CONNECT_TIMEOUT).connect_lazy()
}
