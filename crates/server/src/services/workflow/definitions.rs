//! Reading, listing, enabling and disabling workflows.

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{
    Command, Rejection, SetWorkflowEnabled, VersionChoice, WorkflowRejection, view,
};
use tokio::time::Instant;

/// Serves `GetWorkflow`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetWorkflowRequest,
    deadline: Instant,
) -> Result<v1::Workflow, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let workflow = request::name("name", WorkflowName::new(request.name))?;
    let choice = request::version_choice(request.version, request.revision)?;
    let choice = choice.unwrap_or(VersionChoice::Latest);
    let of_namespace = namespace.clone();
    let look_up = move |reader: &dyn Reader| {
        let namespace = of_namespace;
        let Some((view, source)) = view::workflow(reader, &namespace, &workflow, &choice)? else {
            return not_found(reader, &namespace, &workflow, &choice).map(Err);
        };
        let triggers = match view.is_latest {
            true => view::triggers(reader, &namespace, &workflow)?,
            false => Vec::new(),
        };
        Ok(Ok((view, source, triggers)))
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, look_up)
        .await?;
    let (view, source, triggers) = found?;
    Ok(v1::Workflow {
        triggers: (triggers.into_iter())
            .map(|trigger| convert::trigger::message(&namespace, trigger))
            .collect(),
        ..convert::workflow::message(view, source)
    })
}

/// The rejection that says what does not exist: the workflow, the version or the revision.
fn not_found(
    reader: &dyn Reader,
    namespace: &Namespace,
    workflow: &WorkflowName,
    choice: &VersionChoice,
) -> Result<Rejection, StoreError> {
    let exists = |choice: &VersionChoice| {
        let number = view::definition_number(reader, namespace, workflow, choice)?;
        Ok::<_, StoreError>(number.is_some())
    };
    let (VersionChoice::Version(version) | VersionChoice::Revision(version, _)) = choice else {
        return Ok(Rejection::WorkflowNotFound(workflow.clone()));
    };
    if !exists(&VersionChoice::Latest)? {
        return Ok(Rejection::WorkflowNotFound(workflow.clone()));
    }
    let (workflow, version) = (workflow.clone(), version.clone());
    let rejection = match choice {
        VersionChoice::Revision(_, revision)
            if exists(&VersionChoice::Version(version.clone()))? =>
        {
            WorkflowRejection::RevisionNotFound {
                workflow,
                version,
                revision: *revision,
            }
        }
        _ => WorkflowRejection::VersionNotFound { workflow, version },
    };
    Ok(rejection.into())
}

/// Serves `ListWorkflows`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListWorkflowsRequest,
    deadline: Instant,
) -> Result<v1::ListWorkflowsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let page = request::page(request.limit, &request.page_token)?;
    let list = move |reader: &dyn Reader| {
        view::workflows(reader, &namespace, page.range(), convert::workflow::row)
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    Ok(v1::ListWorkflowsResponse {
        items: found.items,
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `ListRevisions`.
pub(super) async fn revisions(
    context: &CallContext,
    request: v1::ListRevisionsRequest,
    deadline: Instant,
) -> Result<v1::ListRevisionsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let workflow = request::name("workflow", WorkflowName::new(request.workflow))?;
    let page = request::page(request.limit, &request.page_token)?;
    let key = (namespace, workflow.clone());
    let list = move |reader: &dyn Reader| {
        view::revisions(reader, &key, page.range(), convert::workflow::row)
    };
    let found = gateway
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
    context: &CallContext,
    request: v1::EnableWorkflowRequest,
    deadline: Instant,
) -> Result<v1::EnableWorkflowResponse, Refusal> {
    let command = switch(&request.namespace, request.name, true, &request.request_id)?;
    context.gateway.submit(command, deadline).await?;
    Ok(v1::EnableWorkflowResponse {})
}

/// Serves `DisableWorkflow`.
pub(super) async fn disable(
    context: &CallContext,
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
) -> Result<Command<SetWorkflowEnabled>, Refusal> {
    let workflow = request::name("name", WorkflowName::new(name))?;
    Ok(Command {
        request_id: Some(request::request_id(request_id)?),
        scope: request::namespace(namespace)?,
        body: SetWorkflowEnabled {
            workflow,
            is_enabled,
        },
    })
}
