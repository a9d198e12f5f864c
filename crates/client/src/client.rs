//! The client.

use crate::code::ClientCode;
use crate::error::ClientError;
use crate::nodes::Nodes;
use crate::options::ClientOptions;
use crate::retry::{Bounds, Intent};
use std::sync::Arc;
use std::time::Duration;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;

/// The metadata that names the caller's span.
const TRACEPARENT: &str = "traceparent";

/// Calls a cluster. Cheap to clone: clones share their connections.
///
/// Every method takes the request as the protocol defines it and sets what is left open in it: the
/// namespace of the options and a fresh request id.
#[derive(Clone, Debug)]
pub struct Client {
    nodes: Arc<Nodes>,
    namespace: Arc<str>,
    timeout: Duration,
    unreachable_timeout: Duration,
    traceparent: Option<AsciiMetadataValue>,
}

impl Client {
    /// A client of the cluster that the endpoints belong to. Connects when it is first used.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `Usage` when there is no endpoint, when one is not `host:port`, or when the files for TLS are no
    /// good.
    pub fn connect(options: ClientOptions) -> Result<Self, ClientError> {
        Ok(Self {
            nodes: Arc::new(Nodes::new(&options)?),
            namespace: options.namespace.into(),
            timeout: options.timeout,
            unreachable_timeout: options.unreachable_timeout,
            traceparent: None,
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

    /// The same client for calls that are parts of a span, as the header `traceparent` of W3C's Trace Context:
    /// runs that they start are traced with it.
    ///
    /// # Errors
    /// `Usage` when it is no such text. Whether it names a span is the server's to judge, which traces nothing for
    /// what it does not understand.
    pub fn with_traceparent(&self, traceparent: &str) -> Result<Self, ClientError> {
        let value = traceparent.parse().map_err(|_| {
            let message = format!(
                "expected a `traceparent` of W3C's Trace Context, but it is {traceparent:?}"
            );
            ClientError::new(ClientCode::TraceparentInvalid, message)
        })?;
        Ok(Self {
            traceparent: Some(value),
            ..self.clone()
        })
    }

    /// The namespace of requests that name none; empty: the server decides.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// How long a call may take, retries included.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A request as it is sent: within the span that the client's calls are parts of.
    pub(crate) fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Some(traceparent) = &self.traceparent {
            let metadata = request.metadata_mut();
            metadata.insert(TRACEPARENT, traceparent.clone());
        }
        request
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub(crate) fn bounds(&self, intent: Intent) -> Bounds {
        Bounds {
            intent,
            timeout: self.timeout,
            unreachable_timeout: self.unreachable_timeout,
        }
    }
}
