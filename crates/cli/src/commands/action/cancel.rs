//! `flo action cancel`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::CancelActionRunRequest;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo action cancel arun-4
  flo action cancel arun-4 --reason 'ordered twice'";

/// Cancel a stand-alone action run
///
/// A worker that has its task is asked to stop. The action run of a step ends with its run: `flo workflow cancel`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cancel {
    /// The action run's id
    action_run_id: String,

    /// Why; shown as the action run's error
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Debug, Serialize)]
struct CancelledView {
    action_run_id: String,
}

impl Cancel {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CancelActionRunRequest {
            action_run_id: self.action_run_id.clone(),
            reason: self.reason,
            ..CancelActionRunRequest::default()
        };
        session.client()?.cancel_action_run(request).await?;
        let view = CancelledView {
            action_run_id: self.action_run_id,
        };
        session
            .output
            .value(&view, |view| format!("{} cancelled", view.action_run_id))
    }
}
