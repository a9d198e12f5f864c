//! `flo action dlq purge`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::PurgeDeadLettersRequest;
use serde::Serialize;

/// Throw dead letters away
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo action dlq purge charge arun-4\n  flo action dlq purge charge"
)]
pub(crate) struct Purge {
    /// The action's name
    name: String,

    /// One dead letter [default: all of them]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,
}

#[derive(Debug, Serialize)]
struct PurgedView {
    action: String,
    purged: u64,
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
            purged: response.purged,
        };
        session.output.value(&view, |view| {
            format!(
                "dead letters of {} thrown away: {}",
                view.action, view.purged
            )
        })
    }
}
