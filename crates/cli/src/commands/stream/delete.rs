//! `flo stream delete`.

use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteStreamRequest;

/// Delete a stream and its groups; succeeds if it does not exist
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream delete orders")]
pub(crate) struct Delete {
    /// Name of the stream
    name: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteStreamRequest {
            name: self.name.clone(),
            ..DeleteStreamRequest::default()
        };
        let response = session.client()?.delete_stream(request).await?;
        deleted::say(session, self.name, response.deleted)
    }
}
