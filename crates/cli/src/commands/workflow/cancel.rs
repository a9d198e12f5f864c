//! `flo workflow cancel`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::CancelRunRequest;
use serde::Serialize;

/// Cancel a run and its child runs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow cancel wfrun-1 --reason 'ordered twice'")]
pub(crate) struct Cancel {
    /// Id of the run
    run: String,

    /// Reason, kept in the run's history
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
