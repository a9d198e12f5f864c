//! `flo action disable`.

use crate::commands::switch::SwitchedView;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DisableActionRequest;

/// Reject invocations of an action; steps that target it end with target_disabled
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action disable charge")]
pub(crate) struct Disable {
    /// Name of the action
    name: String,
}

impl Disable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DisableActionRequest {
            name: self.name.clone(),
            ..DisableActionRequest::default()
        };
        session.client()?.disable_action(request).await?;
        SwitchedView::new(self.name, false).print(session.output)
    }
}
