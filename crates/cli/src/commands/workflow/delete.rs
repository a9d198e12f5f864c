//! `flo workflow delete`.

use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteWorkflowRequest;

/// Delete a workflow that has no runs; succeeds if it does not exist
///
/// All its versions and revisions, its schedule, its trigger and the state of its plans are deleted. A workflow with runs
/// is refused: cancel the open ones, and wait until the retention of those that have ended is over.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow delete order")]
pub(crate) struct Delete {
    /// Name of the workflow
    name: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteWorkflowRequest {
            name: self.name.clone(),
            ..DeleteWorkflowRequest::default()
        };
        let response = session.client()?.delete_workflow(request).await?;
        deleted::say(session, self.name, response.deleted)
    }
}
