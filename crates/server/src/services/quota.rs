//! The quota service (X37).

use super::serve_call;
use crate::access::CallContext;
use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use crate::gateway::{Freshness, GroupGateway};
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::quota_service_server::QuotaService;
use flotilla_dsl::nearest;
use flotilla_engine::ids::TreeName;
use flotilla_engine::{QuotaDimension, QuotaScope, Rejection, SetQuota, reply, view};
use prost::bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// The quota service of this node.
pub(crate) struct Quotas {
    context: Arc<Context>,
}

impl Quotas {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

/// The change that a request asks for, whatever its scope.
macro_rules! change {
    ($request:ident) => {
        Change {
            limits: $request.limits,
            if_version: $request.if_version,
            if_absent: $request.if_absent,
            any_version: $request.any_version,
            request_id: $request.request_id,
        }
    };
}

#[tonic::async_trait]
impl QuotaService for Quotas {
    async fn get_quota(&self, call: Call<v1::GetQuotaRequest>) -> CallResult<v1::Quota> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            get(&context, of_namespace(&request.namespace), deadline)
        })
        .await
    }

    async fn set_quota(&self, call: Call<v1::SetQuotaRequest>) -> CallResult<v1::Quota> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            let scope = of_namespace(&request.namespace);
            set(&context, scope, change!(request), deadline)
        })
        .await
    }

    async fn get_tree_quota(&self, call: Call<v1::GetTreeQuotaRequest>) -> CallResult<v1::Quota> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            // Before the name of the tree is examined (X16).
            context.gateway.home().check(deadline).await?;
            get(&context, of_tree(&request.tree), deadline).await
        })
        .await
    }

    async fn set_tree_quota(&self, call: Call<v1::SetTreeQuotaRequest>) -> CallResult<v1::Quota> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            let scope = of_tree(&request.tree);
            set(&context, scope, change!(request), deadline)
        })
        .await
    }

    async fn get_default_quota(
        &self,
        call: Call<v1::GetDefaultQuotaRequest>,
    ) -> CallResult<v1::Quota> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, _| {
            get(&context, Ok(QuotaScope::Defaults), deadline)
        })
        .await
    }

    async fn set_default_quota(
        &self,
        call: Call<v1::SetDefaultQuotaRequest>,
    ) -> CallResult<v1::Quota> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            let scope = Ok(QuotaScope::Defaults);
            set(&context, scope, change!(request), deadline)
        })
        .await
    }

    async fn get_usage(&self, call: Call<v1::GetUsageRequest>) -> CallResult<v1::Usage> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            usage(&context, of_namespace(&request.namespace), deadline)
        })
        .await
    }

    async fn get_tree_usage(&self, call: Call<v1::GetTreeUsageRequest>) -> CallResult<v1::Usage> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            // Before the name of the tree is examined (X16).
            context.gateway.home().check(deadline).await?;
            usage(&context, of_tree(&request.tree), deadline).await
        })
        .await
    }
}

/// A change of a quota, whatever its scope.
struct Change {
    limits: BTreeMap<String, u64>,
    if_version: Option<u64>,
    if_absent: bool,
    any_version: bool,
    request_id: Bytes,
}

impl Change {
    /// The version that the quota must have; `None` for any.
    fn expected_version(&self) -> Result<Option<u64>, Refusal> {
        match (self.if_version, self.if_absent, self.any_version) {
            (Some(version), false, false) => Ok(Some(version)),
            (None, true, false) => Ok(Some(0)),
            (None, false, true) => Ok(None),
            (None, false, false) => Err(Refusal::new(
                ServerCode::PreconditionRequired,
                "expected the version of the quota that is replaced, but the request gives none",
            )
            .with_hint(
                "over HTTP, send `If-Match` with the `ETag` of the quota, or `If-None-Match: *` if it has no limits yet",
            )),
            _ => Err(Refusal::invalid(
                "if_version",
                "expected one of `if_version`, `if_absent` and `any_version`, but the request has several",
            )),
        }
    }

    /// The limits by dimension.
    fn limits(&self) -> Result<BTreeMap<QuotaDimension, u64>, Refusal> {
        let limits = self.limits.iter();
        limits
            .map(|(name, limit)| Ok((dimension(name)?, *limit)))
            .collect()
    }
}

/// The dimension with this name.
fn dimension(name: &str) -> Result<QuotaDimension, Refusal> {
    if let Some(dimension) = QuotaDimension::from_name(name) {
        return Ok(dimension);
    }
    let names = QuotaDimension::ALL
        .iter()
        .map(|dimension| dimension.as_str());
    let shown: String = name.chars().take(64).collect();
    let meant = nearest(name, names).map(|meant| format!("; did you mean `{meant}`?"));
    let meant = meant.unwrap_or_default();
    let message = format!("expected a dimension of quotas, but `{shown}` is none{meant}");
    Err(Refusal::invalid("limits", message))
}

fn of_namespace(text: &str) -> Result<QuotaScope, Refusal> {
    request::namespace(text).map(QuotaScope::Namespace)
}

fn of_tree(text: &str) -> Result<QuotaScope, Refusal> {
    request::name("tree", TreeName::new(text)).map(QuotaScope::Tree)
}

/// Where a quota is read: the permission is needed in the namespace, or in the cluster.
fn group<'c>(context: &'c CallContext, scope: &QuotaScope) -> GroupGateway<'c> {
    match scope {
        QuotaScope::Namespace(namespace) => context.gateway.of(namespace),
        QuotaScope::Tree(_) | QuotaScope::Defaults => context.gateway.home(),
    }
}

async fn get(
    context: &CallContext,
    scope: Result<QuotaScope, Refusal>,
    deadline: Instant,
) -> Result<v1::Quota, Refusal> {
    let scope = scope?;
    let quota = group(context, &scope)
        .read(Freshness::Linearizable, deadline, |reader| {
            view::quota(reader, &scope)
        })
        .await?;
    let limits = quota.limits.iter();
    Ok(v1::Quota {
        scope: scope.to_string(),
        version: quota.version,
        limits: limits
            .map(|(dimension, limit)| (dimension.to_string(), *limit))
            .collect(),
    })
}

async fn set(
    context: &CallContext,
    scope: Result<QuotaScope, Refusal>,
    change: Change,
    deadline: Instant,
) -> Result<v1::Quota, Refusal> {
    let body = SetQuota {
        scope: scope?,
        expected_version: change.expected_version()?,
        limits: change.limits()?,
    };
    body.check().map_err(Rejection::from)?;
    let scope = body.scope.to_string();
    let command = request::cluster_command(&change.request_id, Box::new(body))?;
    let reply::QuotaSet { version } = context.gateway.submit(command, deadline).await?;
    Ok(v1::Quota {
        scope,
        version,
        limits: change.limits,
    })
}

async fn usage(
    context: &CallContext,
    scope: Result<QuotaScope, Refusal>,
    deadline: Instant,
) -> Result<v1::Usage, Refusal> {
    let scope = scope?;
    let uses = group(context, &scope)
        .read(Freshness::Linearizable, deadline, |reader| {
            view::usage(reader, &scope)
        })
        .await?;
    let dimensions = uses.into_iter().map(|one| v1::DimensionUsage {
        dimension: one.dimension.to_string(),
        limit: one.limit,
        used: one.used,
    });
    Ok(v1::Usage {
        scope: scope.to_string(),
        dimensions: dimensions.collect(),
    })
}
