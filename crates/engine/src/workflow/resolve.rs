//! Resolves which revision a start or a child uses (W5).

use crate::ids::{Namespace, WorkflowName, WorkflowVersion};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{DefinitionNumber, DefinitionRecord, Definitions, Versions, Workflows};
use crate::turn::{Turn, TurnResult};
use crate::workflow_rejection::WorkflowRejection;
use std::sync::Arc;

/// A revision that was found, and whether its workflow takes new runs.
pub(crate) struct ResolvedDefinition {
    pub(crate) number: DefinitionNumber,
    pub(crate) record: Arc<DefinitionRecord>,
    pub(crate) is_enabled: bool,
}

/// The newest revision of `version`, or the latest of all.
pub(crate) fn newest(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    workflow: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> TurnResult<ResolvedDefinition> {
    let record = turn
        .get::<Workflows>(&(namespace.clone(), workflow.clone()))?
        .ok_or_else(|| Rejection::WorkflowNotFound(workflow.clone()))?;
    let number = match version {
        None => record.latest,
        Some(version) => {
            let key = (namespace.clone(), workflow.clone(), version.clone());
            let (workflow, version) = (workflow.clone(), version.clone());
            let found = turn.get::<Versions>(&key)?;
            let missing = || WorkflowRejection::VersionNotFound { workflow, version };
            found.ok_or_else(missing)?.newest
        }
    };
    Ok(ResolvedDefinition {
        number,
        record: turn.pinned(number)?,
        is_enabled: record.is_enabled,
    })
}

/// The workflow that a revision is of; `None` when the revision is gone.
pub(crate) fn key_of(
    turn: &mut Turn<'_, '_>,
    number: DefinitionNumber,
) -> Result<Option<(Namespace, WorkflowName)>, StoreError> {
    let revision = turn.get::<Definitions>(&number)?;
    Ok(revision.map(|revision| (revision.namespace.clone(), revision.definition.name.clone())))
}
