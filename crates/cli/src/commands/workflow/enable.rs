//! `flo workflow enable`.

use crate::commands::switch::SwitchedView;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::EnableWorkflowRequest;

/// Accept new runs of a workflow again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow enable order")]
pub(crate) struct Enable {
    /// Name of the workflow
    name: String,
}

impl Enable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = EnableWorkflowRequest {
            name: self.name.clone(),
            ..EnableWorkflowRequest::default()
        };
        session.client()?.enable_workflow(request).await?;
        SwitchedView::new(self.name, true).print(session.output)
    }
}
