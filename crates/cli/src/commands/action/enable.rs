//! `flo action enable`.

use crate::commands::switch::SwitchedView;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::EnableActionRequest;

/// Accept invocations of an action again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action enable charge")]
pub(crate) struct Enable {
    /// Name of the action
    name: String,
}

impl Enable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = EnableActionRequest {
            name: self.name.clone(),
            ..EnableActionRequest::default()
        };
        session.client()?.enable_action(request).await?;
        SwitchedView::new(self.name, true).print(session.output)
    }
}
