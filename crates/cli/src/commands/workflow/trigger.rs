//! `flo workflow trigger`.

use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::TriggerView;
use clap::Args;
use flotilla_client::v1::GetWorkflowRequest;

/// Show a workflow's trigger and how far it has read its stream
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow trigger order-processor")]
pub(crate) struct Trigger {
    /// Name of the workflow
    name: String,
}

impl Trigger {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetWorkflowRequest {
            name: self.name.clone(),
            ..GetWorkflowRequest::default()
        };
        let workflow = session.client()?.get_workflow(request).await?;
        let trigger = workflow.trigger.ok_or_else(|| {
            let message = format!(
                "expected workflow {:?} to have a trigger, but it does not have one",
                self.name
            );
            Failure::new(Code::TriggerNotFound, message)
        })?;
        session
            .output
            .value(&TriggerView::from(trigger), TriggerView::text)
    }
}
