//! `flo workflow status`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::RunView;
use clap::Args;
use flotilla_client::v1::GetRunRequest;

/// Show what a run is doing or how it ended, as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow status wfrun-1")]
pub(crate) struct Status {
    /// Id of the run
    run: String,
}

impl Status {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetRunRequest {
            run_id: self.run,
            ..GetRunRequest::default()
        };
        let run = session.client()?.get_run(request).await?;
        let omitted_count = run
            .steps
            .values()
            .filter(|step| step.output_omitted)
            .count();
        let run_id = run.run_id.clone();
        session.output.document(&RunView::from(run))?;
        if omitted_count > 0 {
            let note = format!(
                "outputs left out: {omitted_count}; print one: flo workflow output {run_id} STEP"
            );
            session.output.note(&note);
        }
        Ok(())
    }
}
