//! Why the versions, revisions or runs of a workflow, or a limit, prevent a command (W5).

use crate::ids::{Namespace, WorkflowName, WorkflowVersion};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why the versions, revisions or runs of a workflow, or a limit, prevent a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum WorkflowRejection {
    /// The workflow has no such version (W5).
    #[error("expected version \"{version}\" of workflow \"{workflow}\", but it does not exist")]
    VersionNotFound {
        /// The workflow.
        workflow: WorkflowName,
        /// The version.
        version: WorkflowVersion,
    },
    /// The version has no such revision (W5).
    #[error(
        "expected revision {revision} of version \"{version}\" of workflow \"{workflow}\", but it does not exist"
    )]
    RevisionNotFound {
        /// The workflow.
        workflow: WorkflowName,
        /// The version.
        version: WorkflowVersion,
        /// The revision.
        revision: u32,
    },
    /// The namespace has reached its limit of workflows (W5).
    #[error(
        "expected capacity for another workflow in namespace \"{0}\", but its workflows have reached their limit"
    )]
    WorkflowsTooMany(Namespace),
    /// The workflow has reached its limit of revisions, or of the size of their texts (W5).
    #[error(
        "expected capacity for another revision of workflow \"{0}\", but its revisions have reached their limit in number or size"
    )]
    RevisionsTooMany(WorkflowName),
    /// The workflow that was to be deleted has runs, open or ended (W5).
    #[error("expected workflow \"{0}\" to have no runs, but it has some")]
    HasRuns(WorkflowName),
    /// The workflow was deleted, and rows of it are left (W5).
    #[error("expected workflow \"{0}\" to be deleted completely, but part of it is left")]
    BeingDeleted(WorkflowName),
}

impl WorkflowRejection {
    /// The stable code.
    pub(crate) fn code(&self) -> RejectionCode {
        match self {
            Self::VersionNotFound { .. } => RejectionCode::VersionNotFound,
            Self::RevisionNotFound { .. } => RejectionCode::RevisionNotFound,
            Self::WorkflowsTooMany(_) => RejectionCode::WorkflowsTooMany,
            Self::RevisionsTooMany(_) => RejectionCode::RevisionsTooMany,
            Self::HasRuns(_) => RejectionCode::WorkflowHasRuns,
            Self::BeingDeleted(_) => RejectionCode::WorkflowBeingDeleted,
        }
    }
}
