//! `flo action delete`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DeleteActionRequest;
use serde::Serialize;

/// Delete an action; one that is missing is no error
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action delete charge")]
pub(crate) struct Delete {
    /// The action's name
    name: String,
}

#[derive(Debug, Serialize)]
struct DeletedView {
    name: String,
    deleted: bool,
}

impl Delete {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DeleteActionRequest {
            name: self.name.clone(),
            ..DeleteActionRequest::default()
        };
        let response = session.client()?.delete_action(request).await?;
        let view = DeletedView {
            name: self.name,
            deleted: response.deleted,
        };
        session.output.value(&view, |view| {
            let done = if view.deleted {
                "deleted"
            } else {
                "was not there"
            };
            format!("{} {done}", view.name)
        })
    }
}
