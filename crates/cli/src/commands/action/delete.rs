//! `flo action delete`.

use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteActionRequest;

/// Delete an action; succeeds if it does not exist
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action delete charge")]
pub(crate) struct Delete {
    /// Name of the action
    name: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteActionRequest {
            name: self.name.clone(),
            ..DeleteActionRequest::default()
        };
        let response = session.client()?.delete_action(request).await?;
        deleted::say(session, self.name, response.deleted)
    }
}
