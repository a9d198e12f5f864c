//! `flo stream group delete`.

use super::Named;
use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteGroupRequest;

/// Delete a consumer group; succeeds if it does not exist
///
/// Its position and its records in flight are forgotten.
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
