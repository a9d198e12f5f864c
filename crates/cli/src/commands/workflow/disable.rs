//! `flo workflow disable`.

use crate::commands::switch::SwitchedView;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DisableWorkflowRequest;

/// Stop accepting new runs of a workflow; open runs continue
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow disable order")]
pub(crate) struct Disable {
    /// Name of the workflow
    name: String,
}

impl Disable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DisableWorkflowRequest {
            name: self.name.clone(),
            ..DisableWorkflowRequest::default()
        };
        session.client()?.disable_workflow(request).await?;
        SwitchedView::new(self.name, false).print(session.output)
    }
}
