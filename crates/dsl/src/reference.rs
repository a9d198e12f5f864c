//! References from a definition to what only a server knows (E507, E512).

use crate::{Code, Finding, Span};
use flotilla_engine::ids::{ActionName, Namespace, StreamName, WorkflowName, WorkflowVersion};

/// A target outside the definition, which only a server can look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The target.
    pub target: ReferenceTarget,
    /// The place where the definition names it.
    pub span: Span,
}

/// The kinds of targets outside a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// `@actions/NAME`, of a step or an executor.
    Action(ActionName),
    /// `@workflow/NAME[:VERSION]`, of a step.
    Workflow {
        /// The child's workflow.
        name: WorkflowName,
        /// The version; `None` is the latest (W5).
        version: Option<WorkflowVersion>,
    },
    /// The approvers of a step (W61).
    Approvers,
    /// The stream of a trigger (W41).
    Stream {
        /// Its namespace; `None` is the workflow's.
        namespace: Option<Namespace>,
        /// The stream's name.
        name: StreamName,
    },
}

/// The warning for a reference that the server does not know (E507, E512).
#[must_use]
pub fn unregistered(reference: &Reference) -> Finding {
    let message = match &reference.target {
        ReferenceTarget::Approvers => {
            "approvers are enforced only for callers with a token, because the cluster is open"
                .to_owned()
        }
        ReferenceTarget::Action(name) => format!("action \"{name}\" is not registered yet"),
        ReferenceTarget::Workflow {
            name,
            version: None,
        } => {
            format!("workflow \"{name}\" is not created yet")
        }
        ReferenceTarget::Workflow {
            name,
            version: Some(version),
        } => {
            format!("workflow \"{name}\" has no version \"{version}\" yet")
        }
        ReferenceTarget::Stream {
            namespace: None,
            name,
        } => {
            format!("stream \"{name}\" does not exist yet")
        }
        ReferenceTarget::Stream {
            namespace: Some(namespace),
            name,
        } => {
            format!("stream \"{name}\" does not exist yet in namespace \"{namespace}\"")
        }
    };
    let hint = match &reference.target {
        ReferenceTarget::Action(_) | ReferenceTarget::Workflow { .. } => {
            "until it exists, the step's outcome is `target_not_found`"
        }
        ReferenceTarget::Stream { .. } => "the trigger starts with the stream's first record",
        ReferenceTarget::Approvers => "any caller without a token can approve or reject",
    };
    let code = match &reference.target {
        ReferenceTarget::Approvers => Code::E512,
        _ => Code::E507,
    };
    Finding::new(code, reference.span, message).hint(hint)
}
