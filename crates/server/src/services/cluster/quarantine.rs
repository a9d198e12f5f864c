//! Lists the quarantine and releases items from it (design rule 10).

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::QuarantinedKind;
use flotilla_engine::store::Reader;
use flotilla_engine::{ClusterScope, Command, Rejection, ReleaseQuarantined, reply, view};
use tokio::time::Instant;

/// A page of quarantined items, or those with one name.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListQuarantinedRequest,
    deadline: Instant,
) -> Result<v1::ListQuarantinedResponse, Refusal> {
    if !request.name.is_empty() {
        return find(context, request, deadline).await;
    }
    let page = request::page(request.limit, &request.page_token)?;
    let list = move |reader: &dyn Reader| view::quarantined(reader, page.range());
    let found = context
        .gateway
        .home()
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let items = found.items.into_iter().map(convert::quarantine::message);
    Ok(v1::ListQuarantinedResponse {
        items: items.collect(),
        next_page_token: request::page_token(found.next),
    })
}

async fn find(
    context: &CallContext,
    request: v1::ListQuarantinedRequest,
    deadline: Instant,
) -> Result<v1::ListQuarantinedResponse, Refusal> {
    let kind = kind(request.kind())?;
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = request.name.clone();
    let find = move |reader: &dyn Reader| view::find_quarantined(reader, kind, &namespace, &name);
    let found = gateway
        .scan(Freshness::Linearizable, deadline, find)
        .await?;
    if found.is_empty() {
        let name = request.name;
        return Err(Rejection::QuarantineNotFound { kind, name }.into());
    }
    let items = found.into_iter().map(convert::quarantine::message);
    Ok(v1::ListQuarantinedResponse {
        items: items.collect(),
        next_page_token: String::new(),
    })
}

/// Releases a quarantined item.
pub(super) async fn release(
    context: &CallContext,
    request: v1::ReleaseQuarantinedRequest,
    deadline: Instant,
) -> Result<v1::ReleaseQuarantinedResponse, Refusal> {
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: ClusterScope,
        body: ReleaseQuarantined {
            kind: kind(request.kind())?,
            number: request.number,
        },
    };
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::ReleaseQuarantinedResponse {})
}

fn kind(kind: v1::QuarantinedKind) -> Result<QuarantinedKind, Refusal> {
    convert::quarantine::kind(kind).ok_or_else(|| {
        let message = "expected the kind of the quarantined item, but the request gives none";
        Refusal::invalid("kind", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::Workflows;
    use crate::testing::{StillNode, deadline};
    use flotilla_api::v1::workflow_service_server::WorkflowService;
    use flotilla_engine::Body;
    use flotilla_engine::definition::{StepIndex, Target};
    use flotilla_engine::ids::{Namespace, RunId, SignalType, WorkflowName};
    use flotilla_engine::json::Json;
    use flotilla_engine::{CreateDefinition, SignalRun, StartRun, VersionChoice};
    use std::sync::Arc;

    const DEFINITION: &str = r#"
kind: Workflow
name: order
version: "1.0.0"
start:
  waitForSignal: {type: go, timeoutMs: 600000}
  transitions: {success: flo.Completed}
"#;

    /// A node with a run whose next signal leads to a missing step.
    async fn node_with_a_bug() -> StillNode {
        let node = StillNode::start().await;
        let workflows = Workflows::new(Arc::clone(&node.context));
        let request = v1::CreateWorkflowRequest {
            source: DEFINITION.to_owned(),
            ..Default::default()
        };
        let request = node.request(request);
        workflows.create_workflow(request).await.unwrap();
        let (namespace, name) = (Namespace::default_namespace(), workflow());
        let latest = VersionChoice::Latest;
        let sound =
            node.read(|reader| view::resolve_definition(reader, &namespace, &name, &latest));
        let mut definition = sound.unwrap().definition.definition;
        definition.steps[0].transitions[0].target = Target::Step(StepIndex(9));
        node.submit(Body::CreateDefinition(Box::new(CreateDefinition {
            definition,
            source: "with a bug".to_owned(),
            make_latest: true,
        })))
        .await;
        node.submit(Body::StartRun(StartRun::new(workflow(), Json::null())))
            .await;
        node
    }

    fn workflow() -> WorkflowName {
        WorkflowName::new("order").unwrap()
    }

    /// Sends the signal that triggers the bug.
    async fn signal(node: &StillNode) -> Refusal {
        let body = Body::SignalRun(SignalRun {
            run_id: RunId::new("wfrun-1").unwrap(),
            signal_type: SignalType::new("go").unwrap(),
            payload: Json::null(),
            scope: None,
            signal_id: None,
        });
        let command = body.into_command(Namespace::default_namespace());
        let refused = node.call.gateway.submit(command, deadline()).await;
        refused.unwrap_err()
    }

    fn assert_reason(refusal: &Refusal, reason: &str) {
        let text = refusal.to_string();
        assert!(text.ends_with(&format!("({reason})")), "{text}");
    }

    fn named(name: &str) -> v1::ListQuarantinedRequest {
        v1::ListQuarantinedRequest {
            name: name.to_owned(),
            kind: v1::QuarantinedKind::Run.into(),
            ..Default::default()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_run_that_is_quarantined_after_a_bug_is_found_and_released() {
        let node = node_with_a_bug().await;
        let context = &node.call;
        assert_reason(&signal(&node).await, "internal");
        assert_reason(&signal(&node).await, "run_quarantined");
        let all = list(context, v1::ListQuarantinedRequest::default(), deadline());
        let all = all.await.unwrap();
        let found = list(context, named("wfrun-1"), deadline()).await.unwrap();
        assert_eq!(found, all);
        let item = &found.items[0];
        assert_eq!((item.kind(), item.number), (v1::QuarantinedKind::Run, 1));
        assert_eq!((&*item.namespace, &*item.name), ("default", "wfrun-1"));
        let request = v1::ReleaseQuarantinedRequest {
            request_id: vec![7; 16].into(),
            kind: item.kind,
            number: item.number,
        };
        // A retry gets the same reply, whatever has become of the run since.
        release(context, request.clone(), deadline()).await.unwrap();
        release(context, request.clone(), deadline()).await.unwrap();
        let gone = list(context, named("wfrun-1"), deadline()).await;
        assert_reason(&gone.unwrap_err(), "quarantine_not_found");
        // The bug is still there.
        assert_reason(&signal(&node).await, "internal");
        let again = v1::ReleaseQuarantinedRequest {
            request_id: vec![8; 16].into(),
            ..request
        };
        release(context, again, deadline()).await.unwrap();
        assert_reason(&signal(&node).await, "internal");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_kind_that_is_not_named_is_refused() {
        let node = StillNode::start().await;
        let request = v1::ListQuarantinedRequest {
            name: "wfrun-1".to_owned(),
            ..Default::default()
        };
        let refused = list(&node.call, request, deadline()).await.unwrap_err();
        assert_reason(&refused, "invalid_argument");
    }
}
