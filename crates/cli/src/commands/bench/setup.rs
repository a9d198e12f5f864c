//! What a bench creates before it begins.

use super::payload::Payloads;
use super::runs;
use crate::failure::Failure;
use crate::period;
use clap::Args;
use flotilla_client::Client;
use flotilla_client::v1::{ActionType, CreateWorkflowRequest, RegisterActionRequest};
use futures::{StreamExt, TryStreamExt, stream};
use std::time::Duration;

/// The number of concurrent calls during the setup.
pub(super) const CALLS_IN_FLIGHT: usize = 64;

/// How long the results of a bench are kept.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Keeping {
    /// How long ended runs are kept
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = period::parse)]
    retention: Duration,
}

impl Keeping {
    /// The retention in milliseconds, as definitions have it.
    pub(super) fn retention_ms(self) -> u128 {
        self.retention.as_millis()
    }
}

/// Stores a definition unless it exists, and makes it the latest revision.
pub(super) async fn create_workflow(client: &Client, source: &str) -> Result<(), Failure> {
    let request = CreateWorkflowRequest {
        source: source.to_owned(),
        make_latest: true,
        ..CreateWorkflowRequest::default()
    };
    client.create_workflow(request).await?;
    Ok(())
}

/// Registers an action for workers unless it exists.
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

/// Starts this many runs and returns their ids.
pub(super) async fn start_runs(
    client: &Client,
    workflow: &str,
    count: u32,
    payloads: &Payloads,
) -> Result<Vec<String>, Failure> {
    let starts = stream::iter(0..count).map(|number| {
        let client = client.clone();
        let input = payloads.input(number.into());
        async move { runs::start(&client, workflow, input).await }
    });
    starts.buffer_unordered(CALLS_IN_FLIGHT).try_collect().await
}
