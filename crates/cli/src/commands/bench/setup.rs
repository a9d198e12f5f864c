//! What a bench creates before it begins.

use super::payload::Payloads;
use super::runs;
use crate::failure::Failure;
use flotilla_client::Client;
use flotilla_client::v1::{ActionType, CreateWorkflowRequest, RegisterActionRequest};
use futures::{StreamExt, TryStreamExt, stream};

/// Calls that are under way at a time while something is set up.
pub(super) const CALLS_UNDER_WAY: usize = 64;

/// Stores a definition, unless it is there already, and makes it the one that starts take.
pub(super) async fn create_workflow(client: &Client, source: &str) -> Result<(), Failure> {
    let request = CreateWorkflowRequest {
        source: source.to_owned(),
        make_latest: true,
        ..CreateWorkflowRequest::default()
    };
    client.create_workflow(request).await?;
    Ok(())
}

/// Registers an action for workers, unless it is there already.
pub(super) async fn register_action(client: &Client, name: &str) -> Result<(), Failure> {
    let request = RegisterActionRequest {
        name: name.to_owned(),
        r#type: ActionType::User.into(),
        only_if_missing: true,
        ..RegisterActionRequest::default()
    };
    client.register_action(request).await?;
    Ok(())
}

/// Starts so many runs, and gives their ids.
pub(super) async fn start_runs(
    client: &Client,
    (workflow, count): (&str, u32),
    payloads: &Payloads,
) -> Result<Vec<String>, Failure> {
    let starts = stream::iter(0..count).map(|number| {
        let client = client.clone();
        let input = payloads.input(number.into());
        async move { runs::start(&client, workflow, input).await }
    });
    starts.buffer_unordered(CALLS_UNDER_WAY).try_collect().await
}
