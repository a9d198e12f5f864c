//! `flo workflow cancel`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::CancelRunRequest;
use serde::Serialize;

/// Cancel a run and its children
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow cancel wfrun-1 --reason 'ordered twice'")]
pub(crate) struct Cancel {
    /// The run's id
    run: String,

    /// Why; kept in the history
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Debug, Serialize)]
struct CancelledView {
    run_id: String,
}

impl Cancel {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CancelRunRequest {
            run_id: self.run.clone(),
            reason: self.reason,
            ..CancelRunRequest::default()
        };
        session.client()?.cancel_run(request).await?;
        let view = CancelledView { run_id: self.run };
        session
            .output
            .value(&view, |view| format!("{} cancelled", view.run_id))
    }
}
