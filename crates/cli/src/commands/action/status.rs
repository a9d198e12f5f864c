//! `flo action status`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ActionRunView;
use clap::Args;
use flotilla_client::v1::GetActionRunRequest;

/// Show what an action run is doing or how it ended, as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action status arun-4")]
pub(crate) struct Status {
    /// Id of the action run
    run: String,
}

impl Status {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetActionRunRequest {
            action_run_id: self.run,
            ..GetActionRunRequest::default()
        };
        let run = session.client()?.get_action_run(request).await?;
        session.output.document(&ActionRunView::from(run))
    }
}
