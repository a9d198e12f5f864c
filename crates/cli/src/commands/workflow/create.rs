//! `flo workflow create`.

use super::findings;
use crate::code::Code;
use crate::definition_source::DefinitionSource;
use crate::failure::Failure;
use crate::output::{Format, Output};
use crate::session::Session;
use crate::views::FindingView;
use clap::Args;
use flotilla_client::v1::{CreateWorkflowRequest, CreateWorkflowResponse};
use serde::Serialize;

/// Store a workflow definition
///
/// Storing the same content under the same name and version changes nothing; new content under an
/// existing version becomes its next revision. Without -n, the definition's own namespace is used.
/// Warnings do not prevent storing; E507, for example, says that an action, a child workflow or a
/// trigger's stream does not exist yet.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow create -f order.yaml\n  flo workflow create -f - --make-latest"
)]
pub(crate) struct Create {
    /// Definition file, YAML or JSON; - reads stdin
    #[arg(short, long, value_name = "FILE")]
    file: String,

    /// Make it the latest revision even if it was stored before
    #[arg(long)]
    make_latest: bool,
}

#[derive(Debug, Serialize)]
struct CreatedView {
    name: String,
    version: String,
    revision: u32,
    created: bool,
    latest: bool,
    findings: Vec<FindingView>,
}

impl Create {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let source = DefinitionSource::read(&self.file)?;
        let request = CreateWorkflowRequest {
            source: source.text.clone(),
            file_name: source.file_name.clone(),
            make_latest: self.make_latest,
            ..CreateWorkflowRequest::default()
        };
        let output = session.output;
        let created = session.client()?.create_workflow(request).await;
        let created = created.map_err(|error| explain(error.into(), &source, output))?;
        let view = CreatedView::from(created);
        for finding in &view.findings {
            output.note(&finding.text());
        }
        if let Some(note) = view.note() {
            output.note(&note);
        }
        output.value(&view, CreatedView::text)
    }
}

impl CreatedView {
    /// A change that is easily missed: this version had other content before.
    fn note(&self) -> Option<String> {
        let Self {
            version, revision, ..
        } = self;
        let is_changed = self.created && *revision > 1;
        is_changed.then(|| format!("version {version:?} has new content: revision {revision}"))
    }

    fn text(&self) -> String {
        let Self {
            name,
            version,
            revision,
            ..
        } = self;
        let done = if self.created { "created" } else { "unchanged" };
        let latest = if self.latest { "" } else { ", not the latest" };
        format!("{name} {version} revision {revision} {done}{latest}")
    }
}

impl From<CreateWorkflowResponse> for CreatedView {
    fn from(response: CreateWorkflowResponse) -> Self {
        Self {
            name: response.name,
            version: response.version,
            revision: response.revision,
            created: response.created,
            latest: response.latest,
            findings: response.findings.into_iter().map(Into::into).collect(),
        }
    }
}

/// Shows a person the findings of this binary's own validation, with source lines, in place of the
/// server's refusal, which does not include the source. Falls back to the refusal if this binary
/// finds nothing.
fn explain(failure: Failure, source: &DefinitionSource, output: Output) -> Failure {
    if failure.code() != Code::DefinitionInvalid.as_str() || output.format() != Format::Text {
        return failure;
    }
    let parsed = flotilla_dsl::parse(&source.text);
    if parsed.is_refused() {
        findings::show_and_refuse(source, &parsed.findings, output)
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn view() -> CreatedView {
        CreatedView::from(CreateWorkflowResponse {
            name: "order".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 2,
            created: true,
            latest: true,
            findings: Vec::new(),
        })
    }

    #[test]
    fn a_created_workflow_has_the_published_fields() {
        expect![[r#"{"name":"order","version":"1.0.0","revision":2,"created":true,"latest":true,"findings":[]}"#]]
            .assert_eq(&serde_json::to_string(&view()).expect("printable"));
        assert_eq!(view().text(), "order 1.0.0 revision 2 created");
    }

    #[test]
    fn new_content_under_an_old_version_is_pointed_out() {
        let note = Some(r#"version "1.0.0" has new content: revision 2"#.to_owned());
        assert_eq!(view().note(), note);
        let first = CreatedView {
            revision: 1,
            ..view()
        };
        assert_eq!(first.note(), None);
        let unchanged = CreatedView {
            created: false,
            ..view()
        };
        assert_eq!(unchanged.note(), None);
    }

    #[test]
    fn old_content_says_that_it_changed_nothing() {
        let view = CreatedView {
            created: false,
            latest: false,
            ..view()
        };
        assert_eq!(
            view.text(),
            "order 1.0.0 revision 2 unchanged, not the latest"
        );
    }
}
