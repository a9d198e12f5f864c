//! The cluster service.

mod backup;
mod quarantine;
mod settings;

use super::inspections::Inspected;
use super::{serve_call, serve_stream};
use crate::access::CallContext;
use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::limits::{INSPECTION_ROWS_DEFAULT, INSPECTION_ROWS_MAX};
use crate::metrics;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::cluster_service_server::ClusterService;
use flotilla_engine::{AccessMode, view};
use flotilla_replica::ClusterChange;
use prost::Message;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The cluster service of this node.
pub(crate) struct Clusters {
    context: Arc<Context>,
}

impl Clusters {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

/// Carries out a change of the cluster, if the caller may make it by everything that was acknowledged before.
async fn change(
    context: &CallContext,
    change: ClusterChange,
    deadline: Instant,
) -> Result<bool, Refusal> {
    let home = context.gateway.home();
    // A member can be drained without a leader.
    let needs_leader = !matches!(
        change,
        ClusterChange::DrainNode { .. } | ClusterChange::UndrainNode { .. }
    );
    if needs_leader {
        home.catch_up(deadline).await?;
        home.check_here()?;
    }
    Ok(home.replica().change(change, deadline).await?)
}

/// The number of rows in each section of an inspection.
fn inspection_rows_max(limit: u32) -> Result<u32, Refusal> {
    match limit {
        0 => Ok(INSPECTION_ROWS_DEFAULT),
        1..=INSPECTION_ROWS_MAX => Ok(limit),
        _ => {
            let text =
                format!("expected a limit of at most {INSPECTION_ROWS_MAX}, but it is {limit}");
            Err(Refusal::invalid("limit", text))
        }
    }
}

#[tonic::async_trait]
impl ClusterService for Clusters {
    async fn get_status(
        &self,
        request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::ClusterStatus>, Status> {
        let context = CallContext::of_formation(&self.context, &request).await?;
        serve_call(&context, request, async |_, _| {
            let replica = context.gateway.home().replica();
            let (status, awaited) = (replica.status().await, replica.awaited());
            let fatal = replica.fatal().borrow().clone();
            let stop_reason = fatal.map(|error| format!("{error}; {}", error.hint()));
            let settings = settings::read(&context);
            let message = convert::cluster::message(status, context.node);
            Ok(v1::ClusterStatus {
                settings,
                awaited: awaited.unwrap_or_default(),
                stop_reason: stop_reason.unwrap_or_default(),
                ..message
            })
        })
        .await
    }

    async fn get_node_usage(
        &self,
        call: Request<v1::GetNodeUsageRequest>,
    ) -> Result<Response<v1::NodeUsage>, Status> {
        let context = CallContext::of_formation(&self.context, &call).await?;
        serve_call(&context, call, async |_, _| {
            let usage = metrics::usage(Arc::clone(context.node())).await;
            usage.ok_or_else(|| {
                Refusal::internal(
                    "expected to read the node's resource usage, but that failed".to_owned(),
                )
            })
        })
        .await
    }

    async fn form_cluster(
        &self,
        call: Request<v1::FormClusterRequest>,
    ) -> Result<Response<v1::FormClusterResponse>, Status> {
        let context = CallContext::of_formation(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, _| {
            let home = context.gateway.home();
            let formed = home.replica().form(deadline).await?;
            // Until a leader serves, which is not a part of the result: the cluster is formed.
            drop(home.catch_up(deadline).await);
            Ok(v1::FormClusterResponse {
                cluster_id: formed.cluster_id,
                changed: formed.is_new,
            })
        })
        .await
    }

    async fn add_learner(
        &self,
        call: Request<v1::AddLearnerRequest>,
    ) -> Result<Response<v1::AddLearnerResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            request::address("peer_address", &request.peer_address)?;
            let requested = ClusterChange::AddLearner {
                node_id: request::node_id(request.node_id)?,
                peer_address: request.peer_address,
            };
            let changed = change(&context, requested, deadline).await?;
            Ok(v1::AddLearnerResponse { changed })
        })
        .await
    }

    async fn promote_learner(
        &self,
        call: Request<v1::PromoteLearnerRequest>,
    ) -> Result<Response<v1::PromoteLearnerResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let node_id = request::node_id(request.node_id)?;
            let access = context
                .gateway
                .home()
                .read_here(|reader| view::access(reader))?;
            if access.is_some_and(|access| access.mode == AccessMode::Closed) {
                let learner = Inspected::of(&context, node_id, deadline).await;
                learner.check_keyring(&context)?;
            }
            let requested = ClusterChange::PromoteLearner { node_id };
            let changed = change(&context, requested, deadline).await?;
            Ok(v1::PromoteLearnerResponse { changed })
        })
        .await
    }

    async fn remove_node(
        &self,
        call: Request<v1::RemoveNodeRequest>,
    ) -> Result<Response<v1::RemoveNodeResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let node_id = request::node_id(request.node_id)?;
            let requested = ClusterChange::RemoveNode { node_id };
            let changed = change(&context, requested, deadline).await?;
            Ok(v1::RemoveNodeResponse { changed })
        })
        .await
    }

    async fn transfer_leader(
        &self,
        call: Request<v1::TransferLeaderRequest>,
    ) -> Result<Response<v1::TransferLeaderResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let to = request.node_id.map(request::node_id).transpose()?;
            let requested = ClusterChange::TransferLeader { to };
            let changed = change(&context, requested, deadline).await?;
            Ok(v1::TransferLeaderResponse { changed })
        })
        .await
    }

    async fn drain_node(
        &self,
        call: Request<v1::DrainNodeRequest>,
    ) -> Result<Response<v1::DrainNodeResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let node_id = request::node_id(request.node_id)?;
            let requested = ClusterChange::DrainNode { node_id };
            let changed = change(&context, requested, deadline).await?;
            Ok(v1::DrainNodeResponse { changed })
        })
        .await
    }

    async fn undrain_node(
        &self,
        call: Request<v1::UndrainNodeRequest>,
    ) -> Result<Response<v1::UndrainNodeResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let node_id = request::node_id(request.node_id)?;
            let requested = ClusterChange::UndrainNode { node_id };
            let changed = change(&context, requested, deadline).await?;
            Ok(v1::UndrainNodeResponse { changed })
        })
        .await
    }

    async fn inspect_node(
        &self,
        call: Request<v1::InspectNodeRequest>,
    ) -> Result<Response<v1::NodeInspection>, Status> {
        let context = CallContext::of_formation(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let node = request.node_id.map(request::node_id).transpose()?;
            let node = node.unwrap_or(context.node);
            if node != context.node {
                // Until this node knows the access mode, it speaks for itself alone.
                context.gateway.home().check_here()?;
            }
            let rows_max = inspection_rows_max(request.limit)?;
            let replica = context.gateway.home().replica();
            let inspection = replica.inspect(node, rows_max, deadline).await?;
            v1::NodeInspection::decode(inspection).map_err(|error| {
                let text =
                    "expected a valid inspection from the node, but its response cannot be decoded";
                Refusal::internal(format!("{text}: {error}"))
            })
        })
        .await
    }

    async fn take_snapshot(
        &self,
        call: Request<v1::TakeSnapshotRequest>,
    ) -> Result<Response<v1::TakeSnapshotResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let node = request.node_id.map(request::node_id).transpose()?;
            let node = node.unwrap_or(context.node);
            let replica = context.gateway.home().replica();
            Ok(v1::TakeSnapshotResponse {
                node_id: node.0,
                snapshot_index: replica.snapshot(node, deadline).await?,
            })
        })
        .await
    }

    type BackupStream = ReceiverStream<Result<v1::BackupPart, Status>>;

    async fn backup(
        &self,
        call: Request<v1::BackupRequest>,
    ) -> Result<Response<Self::BackupStream>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        // Parts of a backup are few, and have separate bounds.
        serve_stream(call, async |deadline, _, _| {
            backup::give(&context, deadline).await
        })
        .await
    }

    async fn list_quarantined(
        &self,
        call: Request<v1::ListQuarantinedRequest>,
    ) -> Result<Response<v1::ListQuarantinedResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            quarantine::list(&context, request, deadline)
        })
        .await
    }

    async fn release_quarantined(
        &self,
        call: Request<v1::ReleaseQuarantinedRequest>,
    ) -> Result<Response<v1::ReleaseQuarantinedResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            quarantine::release(&context, request, deadline)
        })
        .await
    }

    async fn set_cluster_settings(
        &self,
        call: Request<v1::SetClusterSettingsRequest>,
    ) -> Result<Response<v1::SetClusterSettingsResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            settings::set(&context, request, deadline)
        })
        .await
    }
}
