//! The gRPC services: each RPC is checked here, becomes a command or a read, and is answered.
//!
//! The worker service lives with the open polls in `workers`.

mod action;
mod cluster;
mod kv;
mod namespace;
mod plan;
mod stream;
mod workflow;

pub(crate) use action::{Actions, report};
pub(crate) use cluster::Clusters;
pub(crate) use kv::{Keys, find as find_key};
pub(crate) use namespace::Namespaces;
pub(crate) use plan::Plans;
pub(crate) use stream::Streams;
pub(crate) use workflow::Workflows;

use crate::deadline;
use crate::errors::Refusal;
use flotilla_engine::Reply;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// Serves one call: what was asked and until when goes in, the answer comes out.
async fn answer<Asked, Answered, Serving>(
    request: Request<Asked>,
    serve: impl FnOnce(Instant, Asked) -> Serving,
) -> Result<Response<Answered>, Status>
where
    Serving: Future<Output = Result<Answered, Refusal>>,
{
    let deadline = deadline::of(request.metadata());
    Ok(Response::new(serve(deadline, request.into_inner()).await?))
}

/// The engine answered a command with the reply of another one.
pub(crate) fn unexpected(reply: &Reply) -> Refusal {
    Refusal::internal(format!(
        "expected the reply to the command, but it is {reply:?}"
    ))
}
