//! `flo workflow cancel`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::PublishedName;
use flotilla_client::v1::CancelRunRequest;
use serde::Serialize;

/// Cancel a run and its child runs
///
/// The command returns when the end of the run is decided. The run then waits until its workers have
/// stopped, and executes the `onCancel` of cancelled steps, its compensations and the `onCancel` of the
/// workflow. `flo workflow status` shows the phase. Once the end of a run is decided, this command is
/// refused without --force.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow cancel wfrun-1 --reason 'ordered twice'\n  \
                  flo workflow cancel wfrun-1 --force"
)]
pub(crate) struct Cancel {
    /// Id of the run
    run: String,

    /// Reason, kept in the run's history
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,

    /// End the run immediately, without compensations and handlers
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Serialize)]
struct CancelledView {
    run_id: String,
    phase: Option<String>,
    ended: bool,
    #[serde(skip)]
    is_forced: bool,
}

impl Cancel {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CancelRunRequest {
            run_id: self.run.clone(),
            reason: self.reason,
            force: self.force,
            ..CancelRunRequest::default()
        };
        let response = session.client()?.cancel_run(request).await?;
        let view = CancelledView {
            run_id: self.run,
            phase: response.phase().published_name(),
            ended: response.ended,
            is_forced: self.force,
        };
        session.output.value(&view, CancelledView::text)
    }
}

impl CancelledView {
    fn text(&self) -> String {
        match &self.phase {
            // Its end may have been decided before.
            None if self.ended && self.is_forced => format!("{} has ended", self.run_id),
            None if self.ended => format!("{} cancelled", self.run_id),
            None => format!("{} is being cancelled", self.run_id),
            Some(phase) => format!("{} is being cancelled, in phase {phase}", self.run_id),
        }
    }
}
