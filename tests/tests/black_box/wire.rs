//! The public protocol, without the client that retries.

use flotilla_api::v1::worker_service_client::WorkerServiceClient;
use flotilla_api::v1::workflow_service_client::WorkflowServiceClient;
use std::time::Duration;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_types::StatusExt;

/// How long a call may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A runtime for a test that calls the protocol itself.
pub(crate) fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

/// The worker service of one node.
pub(crate) fn workers(endpoint: &str) -> WorkerServiceClient<Channel> {
    WorkerServiceClient::new(channel(endpoint))
}

/// The workflow service of one node.
pub(crate) fn workflows(endpoint: &str) -> WorkflowServiceClient<Channel> {
    WorkflowServiceClient::new(channel(endpoint))
}

/// A request with a deadline.
pub(crate) fn within<T>(deadline: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// The error code of a refusal.
pub(crate) fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("expected details, but there are none: {status:?}"));
    assert_eq!(info.domain, "flotilla");
    info.reason
}

fn channel(endpoint: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{endpoint}"));
    endpoint.expect("an address").connect_lazy()
}
