//! `flo kv delete`.

use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteKeyRequest;

/// Delete a key; succeeds if it does not exist
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo kv delete config/limit")]
pub(crate) struct Delete {
    /// Key to delete
    key: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteKeyRequest {
            key: self.key.clone(),
            ..DeleteKeyRequest::default()
        };
        let response = session.client()?.delete_key(request).await?;
        deleted::say(session, self.key, response.deleted)
    }
}
