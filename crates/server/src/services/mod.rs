//! The gRPC services: each RPC is validated here, becomes a command or a read, and is answered.
//!
//! The worker service is with the open polls in `workers`.

mod access;
mod action;
mod cluster;
mod inspections;
mod kv;
mod namespace;
mod plan;
mod quota;
mod reflection;
mod stream;
mod workflow;

pub(crate) use access::Accesses;
pub(crate) use action::{Actions, report};
pub(crate) use cluster::Clusters;
pub(crate) use kv::{Keys, find as find_key};
pub(crate) use namespace::Namespaces;
pub(crate) use plan::Plans;
pub(crate) use quota::Quotas;
pub(crate) use reflection::Reflection;
pub(crate) use stream::Streams;
pub(crate) use workflow::Workflows;

use crate::access::CallContext;
use crate::deadline;
use crate::errors::Refusal;
use crate::sending::ResponseMemory;
use flotilla_api::Redact;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{VersionChoice, view};
use prost::Message;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// Serves one call: takes the request and its deadline, returns what the caller may see of the response, whose memory counts
/// until it is sent.
pub(crate) async fn serve_call<RequestBody, ResponseBody, Serving>(
    context: &CallContext,
    request: Request<RequestBody>,
    serve: impl FnOnce(Instant, RequestBody) -> Serving,
) -> Result<Response<ResponseBody>, Status>
where
    Serving: Future<Output = Result<ResponseBody, Refusal>>,
    ResponseBody: Message + Redact,
{
    let deadline = deadline::of(request.metadata());
    let memory = ResponseMemory::of(&request)?;
    let response = serve(deadline, request.into_inner()).await?;
    Ok(memory.respond(context.visible(response))?)
}

/// Serves one call whose response is a stream: takes the request, its deadline and the memory of the messages.
pub(crate) async fn serve_stream<RequestBody, Messages, Serving>(
    request: Request<RequestBody>,
    serve: impl FnOnce(Instant, RequestBody, ResponseMemory) -> Serving,
) -> Result<Response<Messages>, Status>
where
    Serving: Future<Output = Result<Messages, Refusal>>,
{
    let deadline = deadline::of(request.metadata());
    let memory = ResponseMemory::of(&request)?;
    Ok(Response::new(
        serve(deadline, request.into_inner(), memory).await?,
    ))
}

/// The result of looking up a workflow and one part of it. The caller must distinguish which of the
/// two is missing.
enum Lookup<T> {
    Found(T),
    /// The workflow exists, but has no such part.
    PartMissing,
    WorkflowMissing,
}

impl<T> Lookup<T> {
    fn new(
        found: Option<T>,
        reader: &dyn Reader,
        namespace: &Namespace,
        workflow: &WorkflowName,
    ) -> Result<Self, StoreError> {
        if let Some(found) = found {
            return Ok(Self::Found(found));
        }
        let latest = view::definition_number(reader, namespace, workflow, &VersionChoice::Latest)?;
        Ok(latest.map_or(Self::WorkflowMissing, |_| Self::PartMissing))
    }
}
