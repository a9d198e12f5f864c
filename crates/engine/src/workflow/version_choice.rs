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
    /// The latest revision.
    Latest,
    /// The newest revision of this version.
    Version(WorkflowVersion),
    /// This revision of this version.
    Revision(WorkflowVersion, u32),
    /// The definition with this number (W90).
    Definition(DefinitionNumber),
}

impl VersionChoice {
    /// The definition that the choice selects.
    ///
    /// # Errors
    /// A [`Rejection`] if the workflow, the version or the revision does not exist.
    pub(crate) fn resolve(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        workflow: &WorkflowName,
    ) -> TurnResult<ResolvedDefinition> {
        let (version, number) = match self {
            Self::Latest => return newest(turn, namespace, workflow, None),
            Self::Version(version) => return newest(turn, namespace, workflow, Some(version)),
            Self::Revision(version, revision) => {
                let place = (
                    namespace.clone(),
                    workflow.clone(),
                    version.clone(),
                    *revision,
                );
                (
                    Some(version),
                    turn.get::<Revisions>(&place)?.map(|number| *number),
                )
            }
            Self::Definition(number) => {
                let is_own = key_of(turn, *number)?
                    .is_some_and(|(of, name)| of == *namespace && name == *workflow);
                (None, is_own.then_some(*number))
            }
        };
        let newest = newest(turn, namespace, workflow, version)?;
        let Some(number) = number else {
            return Err(self.missing(workflow).into());
        };
        Ok(ResolvedDefinition {
            number,
            record: turn.pinned(number)?,
            ..newest
        })
    }

    /// Why the choice selects nothing, although the workflow exists, and the version.
    fn missing(&self, workflow: &WorkflowName) -> Rejection {
        match self {
            Self::Revision(version, revision) => WorkflowRejection::RevisionNotFound {
                workflow: workflow.clone(),
                version: version.clone(),
                revision: *revision,
            }
            .into(),
            _ => Rejection::WorkflowNotFound(workflow.clone()),
        }
    }
}
