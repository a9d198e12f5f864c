//! `flo workflow approve` and `flo workflow reject`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::DecideApprovalRequest;
use serde::Serialize;

/// Approve a step that waits for a decision
///
/// The step ends with the outcome `approved` once the number of approvals reaches its quorum.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flo workflow approve wfrun-1\n  \
                        flo workflow approve wfrun-1 --step gate --visit 2 --comment 'well done'")]
pub(crate) struct Approve {
    #[command(flatten)]
    decision: Decision,
}

/// Reject a step that waits for a decision
///
/// One rejection ends the step with the outcome `rejected`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flo workflow reject wfrun-1\n  \
                        flo workflow reject wfrun-1 --step gate --comment 'too expensive'")]
pub(crate) struct Reject {
    #[command(flatten)]
    decision: Decision,
}

#[derive(Debug, Args)]
struct Decision {
    /// Id of the run
    run: String,

    /// Name of the step [default: the only one that waits for a decision]
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    step: Option<String>,

    /// Path of the step's scope, as `flo workflow status` shows it [default: the only one]
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    scope: Option<String>,

    /// Visit to decide, counted in its scope; refused unless it is the current one [default: the current one]
    #[arg(long, value_name = "N")]
    visit: Option<u32>,

    /// Comment, which the output of the step contains
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

#[derive(Debug, Serialize)]
struct DecidedView {
    run_id: String,
    step: String,
    visit: u32,
    approved: bool,
    outcome: Option<String>,
}

impl Approve {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        self.decision.send(session, true).await
    }
}

impl Reject {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        self.decision.send(session, false).await
    }
}

impl Decision {
    async fn send(self, session: &Session, approved: bool) -> Result<(), Failure> {
        let request = DecideApprovalRequest {
            run_id: self.run.clone(),
            step: self.step.unwrap_or_default(),
            scope: self.scope.unwrap_or_default(),
            visit: self.visit,
            approved,
            comment: self.comment.unwrap_or_default(),
            ..DecideApprovalRequest::default()
        };
        let response = session.client()?.decide_approval(request).await?;
        let view = DecidedView {
            run_id: self.run,
            step: response.step,
            visit: response.visit,
            approved,
            outcome: response.outcome,
        };
        session.output.value(&view, DecidedView::text)
    }
}

impl DecidedView {
    fn text(&self) -> String {
        let decision = if self.approved {
            "approved"
        } else {
            "rejected"
        };
        let more = match self.outcome {
            Some(_) => "",
            None => "; more approvals are needed",
        };
        format!("{decision} step {} of {}{more}", self.step, self.run_id)
    }
}
