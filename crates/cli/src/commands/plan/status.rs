//! `flo plan status`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::PlanView;
use clap::Args;
use flotilla_client::v1::GetPlanRequest;

/// Show the executors of a plan: health, breaker and calls left
///
/// Health ranges from 0 to 1. An executor with an open breaker is skipped until the time shown. The
/// limits show how many calls are left now.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo plan status payment-processing charge-payment")]
pub(crate) struct Status {
    /// Name of the workflow; its latest revision defines the plan
    workflow: String,

    /// Name of the plan
    plan: String,
}

impl Status {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetPlanRequest {
            workflow: self.workflow,
            plan: self.plan,
            ..GetPlanRequest::default()
        };
        let plan = session.client()?.get_plan(request).await?;
        session.output.value(&PlanView::from(plan), PlanView::text)
    }
}
