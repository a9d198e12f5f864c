//! `flo action dlq purge`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::PurgeDeadLettersRequest;
use serde::Serialize;

/// Delete dead letters permanently
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo action dlq purge charge arun-4\n  flo action dlq purge charge"
)]
pub(crate) struct Purge {
    /// Name of the action
    name: String,

    /// Id of one dead letter [default: all]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,
}

#[derive(Debug, Serialize)]
struct PurgedView {
    action: String,
    purged_count: u64,
}

impl Purge {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = PurgeDeadLettersRequest {
            action: self.name.clone(),
            id: self.id,
            ..PurgeDeadLettersRequest::default()
        };
        let response = session.client()?.purge_dead_letters(request).await?;
        let view = PurgedView {
            action: self.name,
            purged_count: response.purged_count,
        };
        session.output.value(&view, |view| {
            format!(
                "dead letters of {} deleted: {}",
                view.action, view.purged_count
            )
        })
    }
}
