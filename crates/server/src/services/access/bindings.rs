//! Bindings and blocks of subjects (X12, X17).

use super::rights::{approves, grants};
use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request::{self, Page};
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::store::Reader;
use flotilla_engine::{
    BindSubject, BindingSubject, BlockSubject, CommandScope, UnbindSubject, UnblockSubject, reply,
    view,
};
use tokio::time::Instant;

/// The rights that a subject is to have in a scope.
pub(super) struct NewBinding {
    pub(super) scope: CommandScope,
    pub(super) subject: String,
    pub(super) grants: Vec<String>,
    pub(super) approves: Vec<String>,
    pub(super) request_id: Bytes,
}

/// A binding that is to be deleted.
pub(super) struct Unbinding {
    pub(super) scope: CommandScope,
    pub(super) subject: String,
    pub(super) request_id: Bytes,
}

/// Gives a subject rights.
pub(super) async fn bind(
    context: &CallContext,
    new: NewBinding,
    deadline: Instant,
) -> Result<v1::BindSubjectResponse, Refusal> {
    let body = BindSubject {
        subject: subject(&new.subject)?,
        scope: new.scope,
        grants: grants(&new.grants)?,
        approves: approves(new.approves)?,
    };
    body.check()?;
    let command = request::cluster_command(&new.request_id, Box::new(body))?;
    let reply::SubjectBound { is_new } = context.gateway.submit(command, deadline).await?;
    Ok(v1::BindSubjectResponse { created: is_new })
}

/// Takes back the rights of a subject.
pub(super) async fn unbind(
    context: &CallContext,
    unbinding: Unbinding,
    deadline: Instant,
) -> Result<v1::UnbindSubjectResponse, Refusal> {
    let body = UnbindSubject {
        subject: subject(&unbinding.subject)?,
        scope: unbinding.scope,
    };
    let command = request::cluster_command(&unbinding.request_id, body)?;
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::UnbindSubjectResponse {})
}

/// A page of the bindings of a scope.
pub(super) async fn list(
    context: &CallContext,
    (scope, page): (CommandScope, Page),
    deadline: Instant,
) -> Result<v1::ListBindingsResponse, Refusal> {
    let gateway = context.gateway.of_scope(&scope);
    let list = {
        let scope = scope.clone();
        move |reader: &dyn Reader| view::bindings(reader, &scope, page.range())
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let items = found.items.into_iter();
    Ok(v1::ListBindingsResponse {
        items: items
            .map(|(subject, record)| convert::access::binding((&subject, &scope), record))
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

/// Blocks a subject.
pub(super) async fn block(
    context: &CallContext,
    request: v1::BlockSubjectRequest,
    deadline: Instant,
) -> Result<v1::BlockSubjectResponse, Refusal> {
    let body = BlockSubject {
        subject: subject(&request.subject)?,
        ends_at_ms: request.ends_at_ms,
    };
    let command = request::cluster_command(&request.request_id, body)?;
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::BlockSubjectResponse {})
}

/// Ends the block of a subject.
pub(super) async fn unblock(
    context: &CallContext,
    request: v1::UnblockSubjectRequest,
    deadline: Instant,
) -> Result<v1::UnblockSubjectResponse, Refusal> {
    let body = UnblockSubject {
        subject: subject(&request.subject)?,
    };
    let command = request::cluster_command(&request.request_id, body)?;
    let reply::SubjectUnblocked { was_blocked } = context.gateway.submit(command, deadline).await?;
    Ok(v1::UnblockSubjectResponse {
        unblocked: was_blocked,
    })
}

/// A page of the blocked subjects.
pub(super) async fn list_blocks(
    context: &CallContext,
    request: v1::ListBlocksRequest,
    deadline: Instant,
) -> Result<v1::ListBlocksResponse, Refusal> {
    let page = request::page(request.limit, &request.page_token)?;
    let list = move |reader: &dyn Reader| view::blocks(reader, page.range());
    let home = context.gateway.home();
    let found = home.scan(Freshness::Linearizable, deadline, list).await?;
    let items = found.items.into_iter();
    Ok(v1::ListBlocksResponse {
        items: items
            .map(|(subject, record)| convert::access::block(&subject, record))
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

fn subject(text: &str) -> Result<BindingSubject, Refusal> {
    BindingSubject::parse(text).map_err(|invalid| {
        let hint = "the caller of `flo auth whoami` sees its own subject, and its groups";
        Refusal::invalid("subject", invalid.to_string()).with_hint(hint)
    })
}
