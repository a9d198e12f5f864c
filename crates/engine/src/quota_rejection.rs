//! Why a quota prevents a command, or was not changed (X37, X40).

use crate::quota::{DimensionKind, QuotaDimension, QuotaScope};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why a quota prevents a command, or was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum QuotaRejection {
    /// The command would exceed a quota (X40).
    #[error(transparent)]
    Exceeded(Box<QuotaExceeded>),
    /// The quota has another version than expected.
    #[error("expected the quota of {scope} to have version {expected}, but it has version {found}")]
    VersionMismatch {
        /// Whose quota.
        scope: QuotaScope,
        /// The version that the caller expected; 0 for no limits.
        expected: u64,
        /// The current version; 0 for no limits.
        found: u64,
    },
    /// The namespace does not exist.
    #[error("expected a namespace \"{0}\", but it does not exist")]
    NamespaceMissing(QuotaScope),
    /// The scope cannot have a limit of this dimension.
    #[error("expected a tree for a limit of `{dimension}`, but the scope is {scope}")]
    DimensionOfTrees {
        /// The dimension.
        dimension: QuotaDimension,
        /// Whose quota.
        scope: QuotaScope,
    },
}

/// A quota that a command would exceed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "expected `{dimension}` of {scope} to stay within {limit}, but {}",
    describe(*.dimension, *.used)
)]
pub struct QuotaExceeded {
    /// What is limited.
    pub dimension: QuotaDimension,
    /// Whose quota it is.
    pub scope: QuotaScope,
    /// The limit.
    pub limit: u64,
    /// What is used without the command; of an item its size.
    pub used: u64,
    /// For a rate: how long it takes until there is room, in milliseconds. `None` if there never is.
    pub retry_after_ms: Option<u64>,
}

fn describe(dimension: QuotaDimension, used: u64) -> String {
    match dimension.kind() {
        DimensionKind::Count => format!("{used} are in use"),
        DimensionKind::Rate => format!("{used} were used in the last minute"),
        DimensionKind::Item => format!("this would be {used}"),
    }
}

impl QuotaRejection {
    /// The stable code.
    pub(crate) fn code(&self) -> RejectionCode {
        match self {
            Self::Exceeded(_) => RejectionCode::QuotaExceeded,
            Self::VersionMismatch { .. } => RejectionCode::QuotaVersionMismatch,
            Self::NamespaceMissing(_) => RejectionCode::NamespaceNotFound,
            Self::DimensionOfTrees { .. } => RejectionCode::QuotaDimensionInvalid,
        }
    }
}
