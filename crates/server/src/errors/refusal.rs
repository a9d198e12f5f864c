//! Refusals: why a request failed, with everything that its response says.

use super::reason::{Reason, ServerCode};
use crate::limits::OVERLOAD_DELAY;
use flotilla_engine::ids::Namespace;
use flotilla_engine::{QuotaExceeded, RejectionCode};
use std::fmt;
use std::time::Duration;
use tonic::Code;

/// Why a request was refused: everything that a status, or an item of a batch, says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) code: Code,
    /// The code by which clients distinguish refusals.
    pub(super) reason: &'static str,
    /// One sentence, `expected to …, but …`.
    pub(super) message: Box<str>,
    pub(super) hint: Option<&'static str>,
    pub(super) violations: Vec<Violation>,
    pub(super) retry_delay: Option<Duration>,
    /// The cluster's time, if the caller's clock may be the cause. In milliseconds.
    pub(super) cluster_ms: Option<u64>,
    /// The quota that does not suffice (X40).
    pub(super) quota: Option<Box<QuotaExceeded>>,
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The field, or a place in a definition's text.
    pub(crate) field: String,
    /// What is wrong there.
    pub(crate) description: String,
}

impl Refusal {
    /// A refusal without a hint.
    pub(crate) fn new(reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            code: reason.status,
            reason: reason.name,
            message: message.into().into_boxed_str(),
            hint: None,
            violations: Vec::new(),
            retry_delay: None,
            cluster_ms: None,
            quota: None,
        }
    }

    /// The code by which clients distinguish refusals.
    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }

    /// Whether the caller's credential is bad or missing.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        self.code == Code::Unauthenticated
    }

    /// A malformed request.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::new(ServerCode::InvalidArgument, message).at(field)
    }

    /// A request, or a part of it, exceeds its limit.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self {
            hint: RejectionCode::TooLarge.hint(),
            ..Self::new(RejectionCode::TooLarge, message)
        }
    }

    /// The caller has no rights in the namespace of what it reads, so it does not learn whether that exists.
    pub(crate) fn namespace_not_found(namespace: &Namespace) -> Self {
        let message = format!(
            "expected namespace `{namespace}`, but it does not exist, or the caller has no rights in it"
        );
        Self::new(RejectionCode::NamespaceNotFound, message).with_hint(
            "`flo auth whoami` shows the rights of the caller, and `flo ns list` the namespaces in which it has any",
        )
    }

    /// Only the leader can serve the request, and this node does not lead.
    pub(crate) fn not_leader() -> Self {
        let message = "expected this node to lead, but it does not";
        Self::new(ServerCode::NotLeader, message)
            .with_hint("the metadata `flo-leader` names the node that leads, when it is known")
    }

    /// This node waits to be added to a cluster, or for the other first members.
    pub(crate) fn node_not_member() -> Self {
        let message =
            "expected this node to be a member of a cluster, but it is still waiting to become one";
        Self::new(ServerCode::NodeNotMember, message).with_hint(
            "`flo cluster status` shows whether the node is waiting for other first members, for \
             `flo cluster form` or for `flo cluster add-learner`",
        )
    }

    /// Something outside the request failed; the same request may succeed later.
    pub(crate) fn unavailable(message: &str) -> Self {
        Self::new(ServerCode::Unavailable, message)
    }

    /// An operator has drained this node.
    pub(crate) fn node_drained() -> Self {
        let message = "expected the node to be in service, but an operator has drained it";
        Self::new(ServerCode::NodeDrained, message)
            .with_hint("send the call to another node; an operator can end the drain with `flo cluster undrain`")
    }

    /// This node is stopping.
    pub(crate) fn shutting_down() -> Self {
        let message = "expected the node to keep running, but it is stopping";
        Self::new(ServerCode::ShuttingDown, message).with_hint("ask another node")
    }

    /// This node has too many requests in progress; this one was rejected unread.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        Self::new(ServerCode::Overloaded, message)
            .with_hint("slow down, or ask another node")
            .after(OVERLOAD_DELAY)
    }

    /// A bug of the server.
    pub(crate) fn internal(message: String) -> Self {
        Self::new(RejectionCode::Internal, message)
            .with_hint("report this bug, with the node's log")
    }

    /// Adds a hint.
    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    /// Sets the field that the message is about.
    pub(crate) fn at(mut self, field: &str) -> Self {
        let description = self.message.to_string();
        self.violations.push(Violation {
            field: field.to_owned(),
            description,
        });
        self
    }

    /// Adds field violations.
    pub(crate) fn with_violations(self, violations: Vec<Violation>) -> Self {
        Self { violations, ..self }
    }

    /// Sets the delay after which a retry makes sense.
    pub(crate) fn after(self, retry_delay: Duration) -> Self {
        Self {
            retry_delay: Some(retry_delay),
            ..self
        }
    }

    /// Names the quota that does not suffice. Only a rate says when it has room.
    pub(super) fn over_quota(self, exceeded: Box<QuotaExceeded>) -> Self {
        Self {
            retry_delay: exceeded.retry_after_ms.map(Duration::from_millis),
            quota: Some(exceeded),
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
