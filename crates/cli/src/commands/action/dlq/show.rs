//! `flo action dlq show`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::DeadLetterView;
use clap::Args;
use flotilla_client::v1::GetDeadLetterRequest;

/// Show a dead letter and its input as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action dlq show charge arun-4")]
pub(crate) struct Show {
    /// Name of the action
    name: String,

    /// Id of the dead letter, which is the id of the failed action run
    id: String,
}

impl Show {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetDeadLetterRequest {
            action: self.name,
            id: self.id,
            ..GetDeadLetterRequest::default()
        };
        let dead_letter = session.client()?.get_dead_letter(request).await?;
        session.output.document(&DeadLetterView::from(dead_letter))
    }
}
