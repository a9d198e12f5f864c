//! The standard gRPC health service.

use crate::client::Client;
use crate::error::ClientError;
use crate::pace::Pace;
use crate::requests::Prepare;
use crate::retry::Intent;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// The service's name for the whole node.
const NODE: &str = "";

impl Prepare for HealthCheckRequest {
    fn prepare(&mut self, _namespace: &str) {}

    fn pace(&self) -> Pace {
        Pace::Prompt
    }
}

impl Client {
    /// Whether the node that answers serves clients: it knows a leader and is not draining. Needs no credential.
    ///
    /// # Errors
    /// [`ClientError`] if no node answers.
    pub async fn is_serving(&self) -> Result<bool, ClientError> {
        let request = HealthCheckRequest {
            service: NODE.to_owned(),
        };
        let response = self
            .call(Intent::Read, request, |channel, request| async move {
                HealthClient::new(channel).check(request).await
            })
            .await?;
        Ok(response.status() == ServingStatus::Serving)
    }
}
