//! The namespace service (A41).

use super::serve_call;
use crate::access::CallContext;
use crate::context::Context;
use crate::errors::Refusal;
use crate::faults::exercise;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::namespace_service_server::NamespaceService;
use flotilla_engine::store::Reader;
use flotilla_engine::{Command, DeleteNamespace, RequestId, reply, view};
use std::sync::Arc;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// The namespace service of this node.
pub(crate) struct Namespaces {
    context: Arc<Context>,
}

impl Namespaces {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

#[tonic::async_trait]
impl NamespaceService for Namespaces {
    async fn create_namespace(
        &self,
        call: Call<v1::CreateNamespaceRequest>,
    ) -> CallResult<v1::CreateNamespaceResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            create(&context, request, deadline)
        })
        .await
    }

    async fn list_namespaces(
        &self,
        call: Call<v1::ListNamespacesRequest>,
    ) -> CallResult<v1::ListNamespacesResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            list(&context, request, deadline)
        })
        .await
    }

    async fn delete_namespace(
        &self,
        call: Call<v1::DeleteNamespaceRequest>,
    ) -> CallResult<v1::DeleteNamespaceResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            delete(&context, request, deadline)
        })
        .await
    }
}

async fn create(
    context: &CallContext,
    request: v1::CreateNamespaceRequest,
    deadline: Instant,
) -> Result<v1::CreateNamespaceResponse, Refusal> {
    let home = context.gateway.home();
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        // Unlike elsewhere, an empty name is invalid: no caller means to create or delete
        // `default`.
        scope: request::named_namespace("name", &request.name)?,
        body: exercise::create_namespace(home.engine_version()),
    };
    let reply::NamespaceCreated { is_new } = home.submit(command, deadline).await?;
    Ok(v1::CreateNamespaceResponse { created: is_new })
}

async fn list(
    context: &CallContext,
    request: v1::ListNamespacesRequest,
    deadline: Instant,
) -> Result<v1::ListNamespacesResponse, Refusal> {
    let page = request::page(request.limit, &request.page_token)?;
    let actor = context.gateway.actor().clone();
    let now_ms = context.node_gateway.now_ms();
    let list = move |reader: &dyn Reader| {
        let mut found = view::namespaces(reader, page.range())?;
        let mut shown = Vec::with_capacity(found.items.len());
        for item in found.items {
            if view::has_grant_in(reader, now_ms, (&actor, &item.0))? {
                shown.push(item);
            }
        }
        found.items = shown;
        Ok(found)
    };
    let found = context
        .gateway
        .home()
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let items = found.items.into_iter().map(|(name, record)| v1::Namespace {
        name: name.to_string(),
        created_at_ms: record.created_at_ms,
    });
    Ok(v1::ListNamespacesResponse {
        items: items.collect(),
        next_page_token: request::page_token(found.next),
    })
}

async fn delete(
    context: &CallContext,
    request: v1::DeleteNamespaceRequest,
    deadline: Instant,
) -> Result<v1::DeleteNamespaceResponse, Refusal> {
    let namespace = request::named_namespace("name", &request.name)?;
    let mut request_id = request::request_id(&request.request_id)?;
    let mut deleted = false;
    loop {
        let command = Command {
            request_id: Some(request_id),
            scope: namespace.clone(),
            body: DeleteNamespace {},
        };
        let reply = context.gateway.home().submit(command, deadline).await?;
        deleted |= reply.is_found;
        if !reply.has_more {
            return Ok(v1::DeleteNamespaceResponse { deleted });
        }
        // Each batch has its own request id, and the same one if the caller retries the whole call:
        // so a retry deletes only what existed the first time.
        request_id = RequestId(request_id.0.wrapping_add(1));
    }
}
