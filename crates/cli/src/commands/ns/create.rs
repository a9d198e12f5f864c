//! `flo ns create`.

use crate::commands::created;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::CreateNamespaceRequest;

/// Create a namespace; the first write to a namespace also creates it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo ns create shop-eu")]
pub(crate) struct Create {
    /// Name: a letter, then letters, digits, `.`, `_` or `-`, not ending in `-`, at most 63 bytes
    name: String,
}

impl Create {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CreateNamespaceRequest {
            name: self.name.clone(),
            ..CreateNamespaceRequest::default()
        };
        let response = session.client()?.create_namespace(request).await?;
        created::say(session, self.name, response.created)
    }
}
