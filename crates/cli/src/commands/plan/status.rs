//! `flo plan status`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::PlanView;
use clap::Args;
use flotilla_client::v1::GetPlanRequest;

/// Show a plan's executors as its next execution finds them
///
/// Health is 0 to 1. An executor whose breaker is open is skipped until the time that is shown; the
/// limits show how many calls are left now.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo plan status payment-processing charge-payment")]
pub(crate) struct Status {
    /// The workflow's name; the plan is read in its latest revision
    workflow: String,

    /// The plan's name
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
