//! `flo plan reset`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::ResetPlanRequest;
use serde::Serialize;

/// Reset the health, breaker and limits of a plan's executors
///
/// Clears the health, closes the circuit breakers and resets the rate limits; cached results stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flo plan reset payment-processing charge-payment
  flo plan reset payment-processing charge-payment stripe-primary")]
pub(crate) struct Reset {
    /// Name of the workflow
    workflow: String,

    /// Name of the plan
    plan: String,

    /// Only this executor
    executor: Option<String>,
}

#[derive(Debug, Serialize)]
struct ResetView {
    workflow: String,
    plan: String,
    executor: Option<String>,
}

impl Reset {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let Self {
            workflow,
            plan,
            executor,
        } = self;
        let request = ResetPlanRequest {
            workflow: workflow.clone(),
            plan: plan.clone(),
            executor: executor.clone().unwrap_or_default(),
            ..ResetPlanRequest::default()
        };
        session.client()?.reset_plan(request).await?;
        let view = ResetView {
            workflow,
            plan,
            executor,
        };
        session.output.value(&view, |view| match &view.executor {
            Some(executor) => format!("executor {executor} of plan {} reset", view.plan),
            None => format!("plan {} reset", view.plan),
        })
    }
}
