//! `flo workflow schedule`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ScheduleView;
use clap::Args;
use flotilla_client::v1::GetScheduleRequest;

/// Show a workflow's schedule, its last firing and its next five
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow schedule reconcile-accounts")]
pub(crate) struct Schedule {
    /// Name of the workflow
    name: String,
}

impl Schedule {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetScheduleRequest {
            workflow: self.name,
            ..GetScheduleRequest::default()
        };
        let schedule = session.client()?.get_schedule(request).await?;
        let view = ScheduleView::from(schedule);
        session.output.value(&view, ScheduleView::text)
    }
}
