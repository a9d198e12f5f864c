//! A stored definition.

use super::{TriggerView, or_dash};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// A definition in a list.
#[derive(Debug, Serialize)]
pub(crate) struct WorkflowRow {
    name: String,
    version: String,
    revision: u32,
    enabled: bool,
    latest: bool,
    created_at_ms: u64,
    signature: String,
    content_hash: String,
    description: Option<String>,
}

/// A definition in a list of the revisions of one workflow.
#[derive(Debug, Serialize)]
pub(crate) struct RevisionRow(WorkflowRow);

/// A definition with its text.
#[derive(Debug, Serialize)]
pub(crate) struct WorkflowView {
    #[serde(flatten)]
    row: WorkflowRow,
    triggers: Vec<TriggerView>,
    source: String,
}

impl WorkflowView {
    /// The definition's text, as it was submitted.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

impl From<v1::Workflow> for WorkflowRow {
    fn from(workflow: v1::Workflow) -> Self {
        Self {
            name: workflow.name,
            version: workflow.version,
            revision: workflow.revision,
            enabled: workflow.enabled,
            latest: workflow.latest,
            created_at_ms: workflow.created_at_ms,
            signature: workflow.signature,
            content_hash: workflow.content_hash,
            description: Some(workflow.description).filter(|text| !text.is_empty()),
        }
    }
}

impl From<v1::Workflow> for RevisionRow {
    fn from(workflow: v1::Workflow) -> Self {
        Self(workflow.into())
    }
}

impl From<v1::Workflow> for WorkflowView {
    fn from(mut workflow: v1::Workflow) -> Self {
        Self {
            source: std::mem::take(&mut workflow.source),
            triggers: std::mem::take(&mut workflow.triggers)
                .into_iter()
                .map(TriggerView::from)
                .collect(),
            row: workflow.into(),
        }
    }
}

impl Row for WorkflowRow {
    const HEADINGS: &'static [&'static str] =
        &["NAME", "VERSION", "ENABLED", "CREATED", "DESCRIPTION"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            format!("{} r{}", self.version, self.revision),
            self.enabled.to_string(),
            time::show(self.created_at_ms),
            or_dash(self.description.as_deref()),
        ]
    }
}

impl Row for RevisionRow {
    const HEADINGS: &'static [&'static str] =
        &["VERSION", "REVISION", "LATEST", "SIGNATURE", "CREATED"];

    fn cells(&self) -> Vec<String> {
        let Self(row) = self;
        vec![
            row.version.clone(),
            row.revision.to_string(),
            row.latest.to_string(),
            row.signature.clone(),
            time::show(row.created_at_ms),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_definition_has_the_fields_of_its_row_and_its_text() {
        let view = WorkflowView::from(v1::Workflow {
            name: "order".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 2,
            source: "kind: Workflow\n".to_owned(),
            enabled: true,
            latest: true,
            created_at_ms: 5,
            ..v1::Workflow::default()
        });
        expect![[r#"{"name":"order","version":"1.0.0","revision":2,"enabled":true,"latest":true,"created_at_ms":5,"signature":"","content_hash":"","description":null,"triggers":[],"source":"kind: Workflow\n"}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
        assert_eq!(view.source(), "kind: Workflow\n");
    }
}
