//! `flo workflow show`.

use super::revision_argument::RevisionArgument;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::WorkflowView;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::GetWorkflowRequest;

/// Print a stored definition exactly as it was submitted
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow show order --version 1.0.0 > order.yaml\n  flo workflow show order --version 1.0.0 --revision 2"
)]
pub(crate) struct Show {
    /// Name of the workflow
    name: String,

    /// Newest revision of this version [default: the latest revision]
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    version: Option<String>,

    #[command(flatten)]
    revision: RevisionArgument,
}

impl Show {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetWorkflowRequest {
            name: self.name,
            version: self.version.unwrap_or_default(),
            revision: self.revision.number(),
            ..GetWorkflowRequest::default()
        };
        let workflow = session.client()?.get_workflow(request).await?;
        let view = WorkflowView::from(workflow);
        session.output.value(&view, |view| view.source().to_owned())
    }
}
