//! Actors: on whose behalf a command is carried out (X20).

use super::binding_subject::BindingSubject;
use crate::codec::{self, DecodeError};
use crate::command_scope::CommandScope;
use crate::ids::TokenId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// On whose behalf a command is carried out. The engine judges the right to it when it applies the command, on the state at
/// that entry: a right that was withdrawn by an earlier entry is gone, wherever the command came in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Actor {
    /// The cluster itself: its drivers and the workers that are embedded in its nodes.
    System,
    /// A caller without a credential.
    Anonymous,
    /// The holder of an API token.
    Token(TokenId),
    /// A caller that proves a subject; bindings give it its rights.
    Bound(BoundActor),
}

/// A caller that proves a subject (X11, X12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundActor {
    /// What it proves: its own subject, which gives it its identity.
    pub subject: BindingSubject,
    /// The groups that it proves to be in, which are subjects as well: at most `ACTOR_GROUPS_MAX`, of at most
    /// `ACTOR_GROUPS_BYTES_MAX` bytes together. A client certificate proves none.
    pub groups: Vec<BindingSubject>,
    /// When the proof expires, in milliseconds.
    pub ends_at_ms: u64,
}

impl BoundActor {
    /// All subjects that it proves, its own first.
    pub fn subjects(&self) -> impl Iterator<Item = &BindingSubject> {
        std::iter::once(&self.subject).chain(&self.groups)
    }

    /// The keys of the bindings that can give it rights in the scope: those of the cluster and of the namespace.
    pub(crate) fn bindings_for(
        &self,
        scope: &CommandScope,
    ) -> impl Iterator<Item = (BindingSubject, CommandScope)> {
        let of_namespace = scope.namespace().is_some().then(|| scope.clone());
        let scopes = std::iter::once(CommandScope::Cluster).chain(of_namespace);
        scopes.flat_map(|scope| {
            let subjects = self.subjects();
            subjects.map(move |subject| (subject.clone(), scope.clone()))
        })
    }
}

impl Actor {
    /// The actor as the author of a record: without its groups, which do not identify it.
    pub(crate) fn into_author(self) -> Self {
        match self {
            Self::System | Self::Anonymous | Self::Token(_) => self,
            Self::Bound(bound) => Self::Bound(BoundActor {
                groups: Vec::new(),
                ..bound
            }),
        }
    }

    /// Encodes the actor of a call that is forwarded to the leader.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes the output of [`Actor::encode`].
    ///
    /// # Errors
    /// [`DecodeError`] for any other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => formatter.write_str("the cluster"),
            Self::Anonymous => formatter.write_str("a caller without a credential"),
            Self::Token(token) => write!(formatter, "token {token}"),
            Self::Bound(bound) => write!(formatter, "the credential of {}", bound.subject),
        }
    }
}
