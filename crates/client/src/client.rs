//! The client.

use crate::cluster_clock::ClusterClock;
use crate::code::ClientCode;
use crate::error::ClientError;
use crate::hedges::Hedges;
use crate::nodes::Nodes;
use crate::options::ClientOptions;
use crate::retry::{Bounds, Intent};
use flotilla_api::token::ApiToken;
use std::sync::Arc;
use std::time::Duration;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;

/// The metadata key of the caller's span.
const TRACEPARENT: &str = "traceparent";
/// The metadata key of the caller's credential.
const AUTHORIZATION: &str = "authorization";

/// Calls a cluster. Cheap to clone: clones share their connections.
///
/// Each method takes a request of the protocol and fills in what it leaves open: the namespace of
/// the options and a new request id.
#[derive(Clone, Debug)]
pub struct Client {
    nodes: Arc<Nodes>,
    hedges: Arc<Hedges>,
    clock: Arc<ClusterClock>,
    namespace: Arc<str>,
    timeout: Duration,
    unreachable_timeout: Duration,
    traceparent: Option<AsciiMetadataValue>,
    /// Marked as sensitive, so that it is never printed.
    authorization: Option<AsciiMetadataValue>,
}

impl Client {
    /// Creates a client of the cluster with these endpoints. It connects on first use.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `Usage` without an endpoint, for one that is not `host:port`, for invalid TLS files, or for a token that cannot be sent.
    pub fn connect(options: ClientOptions) -> Result<Self, ClientError> {
        Ok(Self {
            nodes: Arc::new(Nodes::new(&options)?),
            hedges: Arc::default(),
            clock: Arc::default(),
            namespace: options.namespace.into(),
            timeout: options.timeout,
            unreachable_timeout: options.unreachable_timeout,
            traceparent: None,
            authorization: options.token.map(authorization).transpose()?,
        })
    }

    /// The same client with another timeout for its calls.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// The same client in another namespace.
    #[must_use]
    pub fn with_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            ..self.clone()
        }
    }

    /// The same client for calls within a span, given as a W3C Trace Context `traceparent` header:
    /// runs that they start become part of the trace.
    ///
    /// # Errors
    /// `Usage` if the text cannot be a header value. The server decides whether it is a valid span,
    /// and does not trace calls with an invalid one.
    pub fn with_traceparent(&self, traceparent: &str) -> Result<Self, ClientError> {
        let value = traceparent.parse().map_err(|_| {
            let message =
                format!("expected a W3C Trace Context `traceparent`, but it is {traceparent:?}");
            ClientError::new(ClientCode::TraceparentInvalid, message)
        })?;
        Ok(Self {
            traceparent: Some(value),
            ..self.clone()
        })
    }

    /// The namespace of requests that do not set one; if empty, the server decides.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The maximum duration of a call, including retries.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A request with the span and the credential of the client's calls.
    pub(crate) fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Some(traceparent) = &self.traceparent {
            let metadata = request.metadata_mut();
            metadata.insert(TRACEPARENT, traceparent.clone());
        }
        if let Some(authorization) = &self.authorization {
            let metadata = request.metadata_mut();
            metadata.insert(AUTHORIZATION, authorization.clone());
        }
        request
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub(crate) fn clock(&self) -> &ClusterClock {
        &self.clock
    }

    pub(crate) fn hedges(&self) -> &Hedges {
        &self.hedges
    }

    pub(crate) fn bounds(&self, intent: Intent) -> Bounds {
        Bounds {
            intent,
            timeout: self.timeout,
            unreachable_timeout: self.unreachable_timeout,
        }
    }
}

/// The metadata value that shows the token.
fn authorization(token: ApiToken) -> Result<AsciiMetadataValue, ClientError> {
    let value = format!("Bearer {}", token.expose()).parse();
    let mut value: AsciiMetadataValue = value.map_err(|_| {
        let message = "expected an API token, which has letters, digits and `_` alone, but it has other characters";
        ClientError::new(ClientCode::TokenInvalid, message)
    })?;
    value.set_sensitive(true);
    Ok(value)
}
