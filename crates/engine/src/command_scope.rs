//! Where a command acts: in one namespace, or on what no namespace contains.

use crate::ids::Namespace;
use crate::rejection::Rejection;
use serde::{Deserialize, Serialize};

/// The scope of a command. Its kind decides which of the two it is; [`Operation::Scope`](crate::Operation::Scope) says so
/// by type. A command of the cluster does not create a namespace and does not count as the work of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CommandScope {
    /// What no namespace contains: timers, sweeps, terms, settings, and what is named by a number or a token alone.
    Cluster,
    /// One namespace. An accepted command that writes something creates it (A41).
    Namespace(Namespace),
}

/// The scope of commands that only [`CommandScope::Cluster`] fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterScope;

impl CommandScope {
    /// The namespace, if it is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&Namespace> {
        match self {
            Self::Cluster => None,
            Self::Namespace(namespace) => Some(namespace),
        }
    }

    /// The name of the namespace; empty for the cluster. No namespace has an empty name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.namespace().map_or("", Namespace::as_str)
    }

    /// The namespace of a command that must have one.
    ///
    /// # Errors
    /// [`Rejection::Internal`]: the proposer of the command has a bug.
    pub(crate) fn expect_namespace(&self) -> Result<&Namespace, Rejection> {
        self.namespace().ok_or_else(|| {
            Rejection::Internal(
                "expected a command with a namespace, but it acts in no namespace".to_owned(),
            )
        })
    }

    /// Checks the scope of a command of the cluster.
    ///
    /// # Errors
    /// As for [`CommandScope::expect_namespace`].
    pub(crate) fn expect_cluster(&self) -> Result<(), Rejection> {
        match self {
            Self::Cluster => Ok(()),
            Self::Namespace(namespace) => Err(Rejection::Internal(format!(
                "expected a command of the cluster, but it acts in namespace {:?}",
                namespace.as_str()
            ))),
        }
    }
}

impl From<Namespace> for CommandScope {
    fn from(namespace: Namespace) -> Self {
        Self::Namespace(namespace)
    }
}

impl From<ClusterScope> for CommandScope {
    fn from(_: ClusterScope) -> Self {
        Self::Cluster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_takes_no_more_memory_than_a_namespace() {
        assert_eq!(size_of::<CommandScope>(), size_of::<Namespace>());
    }
}
