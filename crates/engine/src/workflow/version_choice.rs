//! Selecting a revision of a workflow (W5).

use super::resolve::{ResolvedDefinition, key_of, newest};
use crate::ids::{Namespace, WorkflowName, WorkflowVersion};
use crate::rejection::Rejection;
use crate::tables::{DefinitionNumber, Revisions};
use crate::turn::{Turn, TurnResult};
use crate::workflow_rejection::WorkflowRejection;
use serde::{Deserialize, Serialize};

/// A revision of a workflow, as a caller selects it (W5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VersionChoice {
    /// The latest.
    Latest,
    /// The newest revision of this version.
    Version(WorkflowVersion),
    /// This revision of this version.
    Revision(WorkflowVersion, u32),
    /// The definition with this number (W90).
    Definition(DefinitionNumber),
}

impl VersionChoice {
    /// # Errors
    /// A [`Rejection`] if the workflow, the version or the revision does not exist.
    pub(crate) fn resolve(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        workflow: &WorkflowName,
    ) -> TurnResult<ResolvedDefinition> {
        let version = match self {
            Self::Latest | Self::Definition(_) => None,
            Self::Version(version) | Self::Revision(version, _) => Some(version),
        };
        let newest = newest(turn, namespace, workflow, version)?;
        let number = match self {
            Self::Latest | Self::Version(_) => return Ok(newest),
            Self::Revision(version, revision) => {
                let place = (
                    namespace.clone(),
                    workflow.clone(),
                    version.clone(),
                    *revision,
                );
                let number = turn.get::<Revisions>(&place)?;
                let missing = || WorkflowRejection::RevisionNotFound {
                    workflow: workflow.clone(),
                    version: version.clone(),
                    revision: *revision,
                };
                *number.ok_or_else(|| Rejection::from(missing()))?
            }
            Self::Definition(number) => *number,
        };
        let is_of_workflow = key_of(turn, number)?
            .is_some_and(|(revision_in, name)| revision_in == *namespace && name == *workflow);
        if !is_of_workflow {
            return Err(Rejection::WorkflowNotFound(workflow.clone()).into());
        }
        Ok(ResolvedDefinition {
            number,
            record: turn.pinned(number)?,
            ..newest
        })
    }
}
