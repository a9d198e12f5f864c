//! What a bench creates before it begins.

use crate::failure::Failure;
use flotilla_client::Client;
use flotilla_client::v1::CreateWorkflowRequest;

/// Stores a definition, unless it is there already, and makes it the one that starts take.
pub(super) async fn create_workflow(client: &Client, source: String) -> Result<(), Failure> {
    let request = CreateWorkflowRequest {
        source,
        make_latest: true,
        ..CreateWorkflowRequest::default()
    };
    client.create_workflow(request).await?;
    Ok(())
}
