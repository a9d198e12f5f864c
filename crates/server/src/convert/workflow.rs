//! Converts workflows to messages.

use flotilla_api::v1;
use flotilla_engine::view::WorkflowView;

/// Converts a revision of a workflow for a list, without its source and its triggers.
pub(crate) fn row(view: WorkflowView) -> v1::Workflow {
    message(view, String::new())
}

/// Converts a revision of a workflow, without its triggers.
pub(crate) fn message(view: WorkflowView, source: String) -> v1::Workflow {
    let definition = view.definition.definition;
    v1::Workflow {
        signature: definition.signature(),
        content_hash: definition.content_hash(),
        name: definition.name.to_string(),
        version: definition.version.to_string(),
        revision: view.definition.revision,
        source,
        enabled: view.is_enabled,
        latest: view.is_latest,
        created_at_ms: view.definition.created_at_ms,
        description: definition.description.unwrap_or_default(),
        triggers: Vec::new(),
    }
}
