//! The namespace service (A41).

use super::answer;
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::namespace_service_server::NamespaceService;
use flotilla_engine::store::Reader;
use flotilla_engine::{Command, CreateNamespace, DeleteNamespace, RequestId, reply, view};
use std::sync::Arc;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// The namespace service of this node.
pub(crate) struct Namespaces {
    context: Arc<Context>,
}

impl Namespaces {
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<Asked> = Request<Asked>;
type Answer<Answered> = Result<Response<Answered>, Status>;

#[tonic::async_trait]
impl NamespaceService for Namespaces {
    async fn create_namespace(
        &self,
        call: Call<v1::CreateNamespaceRequest>,
    ) -> Answer<v1::CreateNamespaceResponse> {
        answer(call, |deadline, asked| {
            create(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_namespaces(
        &self,
        call: Call<v1::ListNamespacesRequest>,
    ) -> Answer<v1::ListNamespacesResponse> {
        answer(call, |deadline, asked| list(&self.context, asked, deadline)).await
    }

    async fn delete_namespace(
        &self,
        call: Call<v1::DeleteNamespaceRequest>,
    ) -> Answer<v1::DeleteNamespaceResponse> {
        answer(call, |deadline, asked| {
            delete(&self.context, asked, deadline)
        })
        .await
    }
}

async fn create(
    context: &Context,
    asked: v1::CreateNamespaceRequest,
    deadline: Instant,
) -> Result<v1::CreateNamespaceResponse, Refusal> {
    let command = Command {
        request_id: Some(request::request_id(&asked.request_id)?),
        // Unlike elsewhere an empty name is none: nobody means to create or delete `default`.
        namespace: request::named_namespace(&asked.name)?,
        body: CreateNamespace {},
    };
    let reply::NamespaceCreated { is_new } = context.gateway.submit(command, deadline).await?;
    Ok(v1::CreateNamespaceResponse { created: is_new })
}

async fn list(
    context: &Context,
    asked: v1::ListNamespacesRequest,
    deadline: Instant,
) -> Result<v1::ListNamespacesResponse, Refusal> {
    let page = request::page(asked.limit, &asked.page_token)?;
    let list = move |reader: &dyn Reader| view::namespaces(reader, page.scope());
    let found = context
        .gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let items = found.items.into_iter().map(|(name, record)| v1::Namespace {
        name: name.to_string(),
        created_at_ms: record.created_at_ms,
    });
    Ok(v1::ListNamespacesResponse {
        items: items.collect(),
        next_page: request::page_token(found.next),
    })
}

async fn delete(
    context: &Context,
    asked: v1::DeleteNamespaceRequest,
    deadline: Instant,
) -> Result<v1::DeleteNamespaceResponse, Refusal> {
    let namespace = request::named_namespace(&asked.name)?;
    let mut request_id = request::request_id(&asked.request_id)?;
    let mut deleted = false;
    loop {
        let command = Command {
            request_id: Some(request_id),
            namespace: namespace.clone(),
            body: DeleteNamespace {},
        };
        let reply = context.gateway.submit(command, deadline).await?;
        deleted |= reply.is_found;
        if !reply.has_more {
            return Ok(v1::DeleteNamespaceResponse { deleted });
        }
        // Each piece has an id of its own, and the same one when the caller sends all of it again: so
        // nothing is deleted but what was there the first time.
        request_id = RequestId(request_id.0.wrapping_add(1));
    }
}
