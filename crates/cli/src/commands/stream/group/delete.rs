//! `flo stream group delete`.

use super::Named;
use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteGroupRequest;

/// Delete a consumer group; one that is missing is no error
///
/// How far it has read and what is in hand are forgotten.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream group delete orders billing")]
pub(crate) struct Delete {
    #[command(flatten)]
    named: Named,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteGroupRequest {
            stream: self.named.stream,
            group: self.named.group.clone(),
            ..DeleteGroupRequest::default()
        };
        let response = session.client()?.delete_group(request).await?;
        deleted::say(session, self.named.group, response.deleted)
    }
}
