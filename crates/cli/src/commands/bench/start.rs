//! `flo bench start`: starts that park on a signal.

use super::load::{Load, Measured};
use super::report::ReportView;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{CreateWorkflowRequest, GetStatusRequest, StartRunRequest};
use flotilla_client::{Client, ClientError};
use std::time::Duration;

const WORKFLOW: &str = "flo-bench-start";

/// A run of it waits for a signal that nobody sends, and ends by itself after an hour.
const SOURCE: &str = r#"
kind: Workflow
name: flo-bench-start
version: "1"
start:
  waitForSignal: {type: never, timeoutMs: 3600000, onTimeout: flo.Completed}
  transitions: {success: flo.Completed}
"#;

/// Measure starts of runs that wait for a signal, in a closed loop
///
/// Each client starts the next run when the one before is acknowledged.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench start --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Start {
    /// How many clients at a time
    #[arg(long, value_name = "C", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: u16,

    /// For how long
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
}

impl Start {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        create_workflow(&client).await?;
        let clients = (0..self.clients)
            .map(|_| session.client())
            .collect::<Result<Vec<_>, _>>()?;
        let load = Load {
            clients,
            length: Duration::from_secs(self.seconds.into()),
        };

        let before = last_log_index(&client).await?;
        let measured = {
            let text = format!("{} clients for {} s", self.clients, self.seconds);
            let _progress = Progress::start(text);
            load.run(start_one).await
        };
        let entries = last_log_index(&client).await?.saturating_sub(before);
        report(self.clients, measured, entries, session)
    }
}

fn report(
    clients: u16,
    measured: Measured,
    entries: u64,
    session: &Session,
) -> Result<(), Failure> {
    if let (0, Some(error)) = (measured.completed(), &measured.error) {
        return Err(error.clone().into());
    }
    let view = ReportView::new("start", clients, &measured, entries);
    session.output.value(&view, ReportView::text)
}

async fn create_workflow(client: &Client) -> Result<(), Failure> {
    let request = CreateWorkflowRequest {
        source: SOURCE.to_owned(),
        ..CreateWorkflowRequest::default()
    };
    client.create_workflow(request).await?;
    Ok(())
}

async fn start_one(client: Client) -> Result<(), ClientError> {
    let request = StartRunRequest {
        workflow: WORKFLOW.to_owned(),
        ..StartRunRequest::default()
    };
    client.start_run(request).await.map(|_| ())
}

/// The end of the longest log.
async fn last_log_index(client: &Client) -> Result<u64, Failure> {
    let status = client.get_status(GetStatusRequest {}).await?;
    Ok(status
        .nodes
        .iter()
        .map(|node| node.last_log_index)
        .max()
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_is_valid() {
        let parsed = flotilla_dsl::parse(SOURCE);
        assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    }
}
