//! `flo workflow graph`.

mod form;
mod mermaid;

use self::form::Form;
use super::findings;
use super::revision_argument::RevisionArgument;
use crate::definition_source::DefinitionSource;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::GetWorkflowRequest;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo workflow graph order
  flo workflow graph -f order.yaml > order.mmd

Boxes are steps, hexagons wait for signals, rounded boxes are terminals. An arrow is labeled with
the outcome that selects it; a dotted arrow is followed when a wait expires. Nothing leads to the
handlers: onError is executed before a run ends failed or timed out, onCancel before it ends
cancelled. To display the chart, paste it into a ```mermaid block in Markdown.";

/// Draw a workflow as a Mermaid flowchart
///
/// Draws a stored workflow, or a file without contacting a server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Graph {
    /// Name of a stored workflow
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,

    /// Definition file, YAML or JSON; - reads stdin
    #[arg(short, long, value_name = "FILE", conflicts_with = "revision")]
    file: Option<String>,

    /// Newest revision of this version [default: the latest revision]
    #[arg(long, conflicts_with = "file", value_parser = NonEmptyStringValueParser::new())]
    version: Option<String>,

    #[command(flatten)]
    revision: RevisionArgument,
}

#[derive(Debug, Serialize)]
struct GraphView {
    workflow: String,
    version: String,
    mermaid: String,
}

impl Graph {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let source = match self.file {
            Some(file) => DefinitionSource::read(&file)?,
            None => {
                let request = GetWorkflowRequest {
                    name: self.name.unwrap_or_default(),
                    version: self.version.unwrap_or_default(),
                    revision: self.revision.number(),
                    ..GetWorkflowRequest::default()
                };
                stored(session, request).await?
            }
        };
        let parsed = flotilla_dsl::parse(&source.text);
        let Some(form) = Form::of(&parsed)? else {
            let findings = &parsed.findings;
            return Err(findings::show_and_refuse(&source, findings, session.output));
        };
        let view = GraphView {
            mermaid: mermaid::draw(&form),
            workflow: form.name,
            version: form.version,
        };
        session.output.value(&view, |view| view.mermaid.clone())
    }
}

async fn stored(
    session: &Session,
    request: GetWorkflowRequest,
) -> Result<DefinitionSource, Failure> {
    let workflow = session.client()?.get_workflow(request).await?;
    Ok(DefinitionSource {
        file_name: workflow.name,
        text: workflow.source,
    })
}
