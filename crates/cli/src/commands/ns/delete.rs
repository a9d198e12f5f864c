//! `flo ns delete`.

use crate::commands::deleted;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteNamespaceRequest;

/// Delete an empty namespace; succeeds if it does not exist
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo ns delete shop-eu")]
pub(crate) struct Delete {
    /// Name of the namespace
    name: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteNamespaceRequest {
            name: self.name.clone(),
            ..DeleteNamespaceRequest::default()
        };
        let response = session.client()?.delete_namespace(request).await?;
        deleted::say(session, self.name, response.deleted)
    }
}
