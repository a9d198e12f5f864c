//! The cluster service.

mod backup;
mod quarantine;

use super::answer;
use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::metrics;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::cluster_service_server::ClusterService;
use flotilla_replica::ClusterChange;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The cluster service of this node.
pub(crate) struct Clusters {
    context: Arc<Context>,
}

impl Clusters {
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    async fn change(&self, change: ClusterChange, deadline: Instant) -> Result<bool, Refusal> {
        let replica = self.context.gateway.replica();
        Ok(replica.change(change, deadline).await?)
    }
}

#[tonic::async_trait]
impl ClusterService for Clusters {
    async fn get_status(
        &self,
        request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::ClusterStatus>, Status> {
        answer(request, async |_, _| {
            let status = self.context.gateway.replica().status().await;
            Ok(convert::cluster::message(status, self.context.node))
        })
        .await
    }

    async fn get_node_usage(
        &self,
        call: Request<v1::GetNodeUsageRequest>,
    ) -> Result<Response<v1::NodeUsage>, Status> {
        answer(call, async |_, _| {
            let usage = metrics::usage(self.context.clone()).await;
            usage.ok_or_else(|| {
                Refusal::internal(
                    "expected the node to know what it uses, but looking failed".to_owned(),
                )
            })
        })
        .await
    }

    async fn add_learner(
        &self,
        call: Request<v1::AddLearnerRequest>,
    ) -> Result<Response<v1::AddLearnerResponse>, Status> {
        answer(call, async |deadline, asked| {
            request::address("peer_address", &asked.peer_address)?;
            let change = ClusterChange::AddLearner {
                node_id: request::node_id(asked.node_id)?,
                peer_address: asked.peer_address,
            };
            let changed = self.change(change, deadline).await?;
            Ok(v1::AddLearnerResponse { changed })
        })
        .await
    }

    async fn promote_learner(
        &self,
        call: Request<v1::PromoteLearnerRequest>,
    ) -> Result<Response<v1::PromoteLearnerResponse>, Status> {
        answer(call, async |deadline, asked| {
            let node_id = request::node_id(asked.node_id)?;
            let change = ClusterChange::PromoteLearner { node_id };
            let changed = self.change(change, deadline).await?;
            Ok(v1::PromoteLearnerResponse { changed })
        })
        .await
    }

    async fn remove_node(
        &self,
        call: Request<v1::RemoveNodeRequest>,
    ) -> Result<Response<v1::RemoveNodeResponse>, Status> {
        answer(call, async |deadline, asked| {
            let node_id = request::node_id(asked.node_id)?;
            let change = ClusterChange::RemoveNode { node_id };
            let changed = self.change(change, deadline).await?;
            Ok(v1::RemoveNodeResponse { changed })
        })
        .await
    }

    async fn transfer_leader(
        &self,
        call: Request<v1::TransferLeaderRequest>,
    ) -> Result<Response<v1::TransferLeaderResponse>, Status> {
        answer(call, async |deadline, asked| {
            let to = asked.node_id.map(request::node_id).transpose()?;
            let change = ClusterChange::TransferLeader { to };
            let changed = self.change(change, deadline).await?;
            Ok(v1::TransferLeaderResponse { changed })
        })
        .await
    }

    async fn take_snapshot(
        &self,
        call: Request<v1::TakeSnapshotRequest>,
    ) -> Result<Response<v1::TakeSnapshotResponse>, Status> {
        answer(call, async |deadline, asked| {
            let node = asked.node_id.map(request::node_id).transpose()?;
            let node = node.unwrap_or(self.context.node);
            let replica = self.context.gateway.replica();
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
        answer(call, async |deadline, _| {
            backup::give(&self.context, deadline).await
        })
        .await
    }

    async fn list_quarantined(
        &self,
        call: Request<v1::ListQuarantinedRequest>,
    ) -> Result<Response<v1::ListQuarantinedResponse>, Status> {
        answer(call, |deadline, asked| {
            quarantine::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn retry_quarantined(
        &self,
        call: Request<v1::RetryQuarantinedRequest>,
    ) -> Result<Response<v1::RetryQuarantinedResponse>, Status> {
        answer(call, |deadline, asked| {
            quarantine::retry(&self.context, asked, deadline)
        })
        .await
    }
}
