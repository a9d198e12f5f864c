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
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// Serves one call: what was asked and until when goes in, the answer comes out.
pub(crate) async fn answer<Asked, Answered, Serving>(
    request: Request<Asked>,
    serve: impl FnOnce(Instant, Asked) -> Serving,
) -> Result<Response<Answered>, Status>
where
    Serving: Future<Output = Result<Answered, Refusal>>,
{
    let deadline = deadline::of(request.metadata());
    Ok(Response::new(serve(deadline, request.into_inner()).await?))
}

/// What was looked up by the name of a workflow and that of a part of it. Which of the two is missing
/// matters to the caller.
enum Sought<T> {
    Found(T),
    /// The workflow is there, and has no such part.
    PartMissing,
    WorkflowMissing,
}

impl<T> Sought<T> {
    fn new(
        found: Option<T>,
        reader: &dyn Reader,
        (namespace, workflow): (&Namespace, &WorkflowName),
    ) -> Result<Self, StoreError> {
        if let Some(found) = found {
            return Ok(Self::Found(found));
        }
        let latest = view::resolve_definition(reader, namespace, (workflow, None))?;
        Ok(latest.map_or(Self::WorkflowMissing, |_| Self::PartMissing))
    }
}
