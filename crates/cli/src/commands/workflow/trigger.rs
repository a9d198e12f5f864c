//! `flo workflow trigger`.

use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::TriggersView;
use clap::Args;
use flotilla_client::v1::GetWorkflowRequest;

/// Show a workflow's triggers and how far they have read their streams
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
        if workflow.triggers.is_empty() {
            let message = format!(
                "expected workflow {:?} to have a trigger, but it does not have one",
                self.name
            );
            return Err(Failure::new(Code::TriggerNotFound, message));
        }
        let triggers = TriggersView::from(workflow.triggers);
        session.output.value(&triggers, TriggersView::text)
    }
}
