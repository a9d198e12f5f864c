//! The access service: the mode of the cluster, its API tokens, and the rights of subjects (X1, X10, X17).

mod bindings;
mod mode;
mod rights;
mod tokens;

use super::serve_call;
use crate::access::CallContext;
use crate::context::Context;
use crate::request;
use bindings::{NewBinding, Unbinding};
use flotilla_api::v1;
use flotilla_api::v1::access_service_server::AccessService;
use flotilla_engine::CommandScope;
use std::sync::Arc;
use tokens::{NewToken, Rotation, TokenKey, TokenRange};
use tonic::{Request, Response, Status};

/// The access service of this node.
pub(crate) struct Accesses {
    context: Arc<Context>,
}

impl Accesses {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

#[tonic::async_trait]
impl AccessService for Accesses {
    async fn who_am_i(&self, call: Call<v1::WhoAmIRequest>) -> CallResult<v1::WhoAmIResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, _| {
            mode::who_am_i(&context, deadline)
        })
        .await
    }

    async fn get_access(&self, call: Call<v1::GetAccessRequest>) -> CallResult<v1::Access> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, _| mode::get(&context, deadline)).await
    }

    async fn set_access(&self, call: Call<v1::SetAccessRequest>) -> CallResult<v1::Access> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            mode::set(&context, request, deadline)
        })
        .await
    }

    async fn create_token(&self, call: Call<v1::CreateTokenRequest>) -> CallResult<v1::Token> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let scope = request::namespace(&request.namespace)?.into();
            let new = NewToken {
                name: request.name,
                grants: request.grants,
                approves: request.approves,
                identity: request.identity,
                ttl_ms: request.ttl_ms,
                secret_sha256: request.secret_sha256,
                request_id: request.request_id,
            };
            tokens::create(&context, (scope, new), deadline).await
        })
        .await
    }

    async fn get_token(&self, call: Call<v1::GetTokenRequest>) -> CallResult<v1::Token> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let scope = request::namespace(&request.namespace)?.into();
            let key = TokenKey::of(scope, &request.id)?;
            tokens::get(&context, key, deadline).await
        })
        .await
    }

    async fn list_tokens(
        &self,
        call: Call<v1::ListTokensRequest>,
    ) -> CallResult<v1::ListTokensResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let range = TokenRange {
                scope: request::namespace(&request.namespace)?.into(),
                page: request::page(request.limit, &request.page_token)?,
            };
            tokens::list(&context, range, deadline).await
        })
        .await
    }

    async fn rotate_token(&self, call: Call<v1::RotateTokenRequest>) -> CallResult<v1::Token> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let scope = request::namespace(&request.namespace)?.into();
            let rotation = Rotation {
                key: TokenKey::of(scope, &request.id)?,
                secret_sha256: request.secret_sha256,
                overlap_ms: request.overlap_ms,
                request_id: request.request_id,
            };
            tokens::rotate(&context, rotation, deadline).await
        })
        .await
    }

    async fn revoke_token(
        &self,
        call: Call<v1::RevokeTokenRequest>,
    ) -> CallResult<v1::RevokeTokenResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let scope = request::namespace(&request.namespace)?.into();
            let key = TokenKey::of(scope, &request.id)?;
            tokens::revoke(&context, (key, &request.request_id), deadline).await
        })
        .await
    }

    async fn create_cluster_token(
        &self,
        call: Call<v1::CreateClusterTokenRequest>,
    ) -> CallResult<v1::Token> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let new = NewToken {
                name: request.name,
                grants: request.grants,
                approves: request.approves,
                identity: request.identity,
                ttl_ms: request.ttl_ms,
                secret_sha256: request.secret_sha256,
                request_id: request.request_id,
            };
            tokens::create(&context, (CommandScope::Cluster, new), deadline).await
        })
        .await
    }

    async fn get_cluster_token(
        &self,
        call: Call<v1::GetClusterTokenRequest>,
    ) -> CallResult<v1::Token> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let key = TokenKey::of(CommandScope::Cluster, &request.id)?;
            tokens::get(&context, key, deadline).await
        })
        .await
    }

    async fn list_cluster_tokens(
        &self,
        call: Call<v1::ListClusterTokensRequest>,
    ) -> CallResult<v1::ListTokensResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let range = TokenRange {
                scope: CommandScope::Cluster,
                page: request::page(request.limit, &request.page_token)?,
            };
            tokens::list(&context, range, deadline).await
        })
        .await
    }

    async fn rotate_cluster_token(
        &self,
        call: Call<v1::RotateClusterTokenRequest>,
    ) -> CallResult<v1::Token> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let rotation = Rotation {
                key: TokenKey::of(CommandScope::Cluster, &request.id)?,
                secret_sha256: request.secret_sha256,
                overlap_ms: request.overlap_ms,
                request_id: request.request_id,
            };
            tokens::rotate(&context, rotation, deadline).await
        })
        .await
    }

    async fn revoke_cluster_token(
        &self,
        call: Call<v1::RevokeClusterTokenRequest>,
    ) -> CallResult<v1::RevokeTokenResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let key = TokenKey::of(CommandScope::Cluster, &request.id)?;
            tokens::revoke(&context, (key, &request.request_id), deadline).await
        })
        .await
    }

    async fn bind_subject(
        &self,
        call: Call<v1::BindSubjectRequest>,
    ) -> CallResult<v1::BindSubjectResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let new = NewBinding {
                scope: request::namespace(&request.namespace)?.into(),
                subject: request.subject,
                grants: request.grants,
                approves: request.approves,
                request_id: request.request_id,
            };
            bindings::bind(&context, new, deadline).await
        })
        .await
    }

    async fn unbind_subject(
        &self,
        call: Call<v1::UnbindSubjectRequest>,
    ) -> CallResult<v1::UnbindSubjectResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let unbinding = Unbinding {
                scope: request::namespace(&request.namespace)?.into(),
                subject: request.subject,
                request_id: request.request_id,
            };
            bindings::unbind(&context, unbinding, deadline).await
        })
        .await
    }

    async fn list_bindings(
        &self,
        call: Call<v1::ListBindingsRequest>,
    ) -> CallResult<v1::ListBindingsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let scope = request::namespace(&request.namespace)?.into();
            let page = request::page(request.limit, &request.page_token)?;
            bindings::list(&context, (scope, page), deadline).await
        })
        .await
    }

    async fn bind_cluster_subject(
        &self,
        call: Call<v1::BindClusterSubjectRequest>,
    ) -> CallResult<v1::BindSubjectResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let new = NewBinding {
                scope: CommandScope::Cluster,
                subject: request.subject,
                grants: request.grants,
                approves: request.approves,
                request_id: request.request_id,
            };
            bindings::bind(&context, new, deadline).await
        })
        .await
    }

    async fn unbind_cluster_subject(
        &self,
        call: Call<v1::UnbindClusterSubjectRequest>,
    ) -> CallResult<v1::UnbindSubjectResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let unbinding = Unbinding {
                scope: CommandScope::Cluster,
                subject: request.subject,
                request_id: request.request_id,
            };
            bindings::unbind(&context, unbinding, deadline).await
        })
        .await
    }

    async fn list_cluster_bindings(
        &self,
        call: Call<v1::ListClusterBindingsRequest>,
    ) -> CallResult<v1::ListBindingsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let page = request::page(request.limit, &request.page_token)?;
            bindings::list(&context, (CommandScope::Cluster, page), deadline).await
        })
        .await
    }

    async fn block_subject(
        &self,
        call: Call<v1::BlockSubjectRequest>,
    ) -> CallResult<v1::BlockSubjectResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            bindings::block(&context, request, deadline)
        })
        .await
    }

    async fn unblock_subject(
        &self,
        call: Call<v1::UnblockSubjectRequest>,
    ) -> CallResult<v1::UnblockSubjectResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            bindings::unblock(&context, request, deadline)
        })
        .await
    }

    async fn list_blocks(
        &self,
        call: Call<v1::ListBlocksRequest>,
    ) -> CallResult<v1::ListBlocksResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            bindings::list_blocks(&context, request, deadline)
        })
        .await
    }
}
