//! Reading, listing, enabling and disabling workflows.

use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use crate::services::Lookup;
use flotilla_api::v1;
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::store::Reader;
use flotilla_engine::{
    Body, Command, Rejection, SetWorkflowEnabled, VersionChoice, WorkflowRejection, view,
};
use tokio::time::Instant;

/// Serves `GetWorkflow`.
pub(super) async fn get(
    context: &Context,
    request: v1::GetWorkflowRequest,
    deadline: Instant,
) -> Result<v1::Workflow, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let workflow = request::name(WorkflowName::new(request.name))?;
    let choice = request::version_choice(request.version, request.revision)?;
    let choice = choice.unwrap_or(VersionChoice::Latest);
    let look_up = |reader: &dyn Reader| {
        let found = view::workflow(reader, &namespace, &workflow, &choice)?;
        let found = match found {
            Some((latest, source)) if latest.is_latest => {
                let triggers = view::triggers(reader, &namespace, &workflow)?;
                Some((latest, source, triggers))
            }
            Some((other, source)) => Some((other, source, Vec::new())),
            None => None,
        };
        Lookup::new(found, reader, &namespace, &workflow)
    };
    let sought = context
        .gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    let rejection: Rejection = match (sought, choice) {
        (Lookup::Found((view, source, triggers)), _) => {
            return Ok(v1::Workflow {
                triggers: (triggers.into_iter())
                    .map(|trigger| convert::trigger::message(&namespace, trigger))
                    .collect(),
                ..convert::workflow::message(view, source)
            });
        }
        (Lookup::PartMissing, VersionChoice::Version(version)) => {
            WorkflowRejection::VersionNotFound { workflow, version }.into()
        }
        (Lookup::PartMissing, VersionChoice::Revision(version, revision)) => {
            WorkflowRejection::RevisionNotFound {
                workflow,
                version,
                revision,
            }
            .into()
        }
        (Lookup::PartMissing | Lookup::WorkflowMissing, _) => Rejection::WorkflowNotFound(workflow),
    };
    Err(Refusal::from(rejection))
}

/// Serves `ListWorkflows`.
pub(super) async fn list(
    context: &Context,
    request: v1::ListWorkflowsRequest,
    deadline: Instant,
) -> Result<v1::ListWorkflowsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let page = request::page(request.limit, &request.page_token)?;
    let list = move |reader: &dyn Reader| {
        view::workflows(reader, &namespace, page.range(), convert::workflow::row)
    };
    let found = context
        .gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    Ok(v1::ListWorkflowsResponse {
        items: found.items,
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `ListRevisions`.
pub(super) async fn revisions(
    context: &Context,
    request: v1::ListRevisionsRequest,
    deadline: Instant,
) -> Result<v1::ListRevisionsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let workflow = request::name(WorkflowName::new(request.workflow))?;
    let page = request::page(request.limit, &request.page_token)?;
    let key = (namespace, workflow.clone());
    let list = move |reader: &dyn Reader| {
        view::revisions(reader, &key, page.range(), convert::workflow::row)
    };
    let found = context
        .gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let found = found.ok_or(Rejection::WorkflowNotFound(workflow))?;
    Ok(v1::ListRevisionsResponse {
        items: found.items,
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `EnableWorkflow`.
pub(super) async fn enable(
    context: &Context,
    request: v1::EnableWorkflowRequest,
    deadline: Instant,
) -> Result<v1::EnableWorkflowResponse, Refusal> {
    let command = switch(&request.namespace, request.name, true, &request.request_id)?;
    context.gateway.submit(command, deadline).await?;
    Ok(v1::EnableWorkflowResponse {})
}

/// Serves `DisableWorkflow`.
pub(super) async fn disable(
    context: &Context,
    request: v1::DisableWorkflowRequest,
    deadline: Instant,
) -> Result<v1::DisableWorkflowResponse, Refusal> {
    let command = switch(&request.namespace, request.name, false, &request.request_id)?;
    context.gateway.submit(command, deadline).await?;
    Ok(v1::DisableWorkflowResponse {})
}

fn switch(
    namespace: &str,
    name: String,
    is_enabled: bool,
    request_id: &[u8],
) -> Result<Command, Refusal> {
    let workflow = request::name(WorkflowName::new(name))?;
    Ok(Command {
        request_id: Some(request::request_id(request_id)?),
        namespace: request::namespace(namespace)?,
        body: Body::SetWorkflowEnabled(SetWorkflowEnabled {
            workflow,
            is_enabled,
        }),
    })
}
