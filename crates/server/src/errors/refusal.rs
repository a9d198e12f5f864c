//! Why a request was refused.

use super::reason::{Reason, ServerCode};
use crate::limits::OVERLOAD_DELAY;
use flotilla_engine::RejectionCode;
use std::fmt;
use std::time::Duration;
use tonic::Code;

/// Why a request was refused: everything that a status or an item of a batch says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) code: Code,
    /// Clients tell refusals apart by it.
    pub(super) reason: &'static str,
    /// One sentence, `expected to …, but …`.
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
    pub(super) violations: Vec<Violation>,
    pub(super) retry_delay: Option<Duration>,
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Where: a field, or a place in a definition's text.
    pub(crate) field: String,
    /// What is wrong there.
    pub(crate) description: String,
}

impl Refusal {
    /// A refusal without advice.
    pub(crate) fn new(reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            code: reason.status,
            reason: reason.name,
            message: message.into(),
            hint: None,
            violations: Vec::new(),
            retry_delay: None,
        }
    }

    /// A malformed request.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::new(ServerCode::InvalidArgument, message).at(field)
    }

    /// Only the leader can answer, and this node is not it.
    pub(crate) fn not_leader() -> Self {
        let message = "expected this node to lead, but it does not";
        Self::new(ServerCode::NotLeader, message)
            .with_hint("the metadata `flo-leader` names the node that leads, when it is known")
    }

    /// This node waits to be taken into a cluster, or for the first members of its own.
    pub(crate) fn not_a_member() -> Self {
        let message =
            "expected this node to be a member of a cluster, but it still waits to become one";
        Self::new(ServerCode::NotAMember, message).with_hint(
            "ask a member; the node's log says whether it waits for the other first members or for \
             `flo cluster add-learner`",
        )
    }

    /// Something outside the request failed, and the same request may succeed later.
    pub(crate) fn unavailable(message: &str) -> Self {
        Self::new(ServerCode::Unavailable, message)
    }

    /// This node stops.
    pub(crate) fn shutting_down() -> Self {
        let message = "expected the node to stay, but it is stopping";
        Self::new(ServerCode::ShuttingDown, message).with_hint("ask another node")
    }

    /// This node has more in hand than it may; the request was not looked at.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        Self::new(ServerCode::Overloaded, message)
            .with_hint("slow down, or ask another node")
            .after(OVERLOAD_DELAY)
    }

    /// A bug.
    pub(crate) fn internal(message: String) -> Self {
        Self::new(RejectionCode::Internal, message)
            .with_hint("this is a bug: please report it with the node's log")
    }

    /// The same with advice.
    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    /// The same with the field that the message is about.
    pub(crate) fn at(mut self, field: &str) -> Self {
        let description = self.message.clone();
        self.violations.push(Violation {
            field: field.to_owned(),
            description,
        });
        self
    }

    /// The same with faults of its own.
    pub(crate) fn with_violations(self, violations: Vec<Violation>) -> Self {
        Self { violations, ..self }
    }

    /// The same with the time after which trying again makes sense.
    pub(crate) fn after(self, retry_delay: Duration) -> Self {
        Self {
            retry_delay: Some(retry_delay),
            ..self
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn may_succeed_later(&self) -> bool {
        matches!(
            self.code,
            Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.reason)
    }
}
