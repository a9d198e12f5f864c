//! The cluster service.

use super::answer;
use crate::context::Context;
use crate::convert;
use flotilla_api::v1;
use flotilla_api::v1::cluster_service_server::ClusterService;
use std::sync::Arc;
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
}
