//! Why a part of the leader could not do its work.

use crate::hub::PollClosed;
use flotilla_dsl::schema::SchemaInvalid;
use flotilla_engine::reply::UnexpectedReply;
use flotilla_engine::store::StoreError;
use flotilla_engine::{Rejection, RejectionKind};
use flotilla_replica::{ReadError, SubmitError};
use std::io;

/// Why a part of the leader could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command got no result.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The engine rejected the command.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The command got the reply of another one: a bug.
    #[error(transparent)]
    Reply(#[from] UnexpectedReply),
    /// The state could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The worker has no open poll here.
    #[error(transparent)]
    PollClosed(#[from] PollClosed),
    /// A stored schema is invalid: a bug.
    #[error("expected the schema of a stored definition to be valid, but {0}")]
    SchemaInvalid(#[from] SchemaInvalid),
    /// A blocking job failed: a bug.
    #[error("expected a value to be checked, but the check failed: {0}")]
    Job(#[from] io::Error),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

impl Error {
    /// Whether the same attempt may succeed later.
    #[must_use]
    pub fn may_succeed_later(&self) -> bool {
        match self {
            Self::Submit(error) => match error {
                SubmitError::Overloaded { .. }
                | SubmitError::NoLeader
                | SubmitError::NodeNotMember
                | SubmitError::Unknown
                | SubmitError::DiskLow
                | SubmitError::Diverged
                | SubmitError::Shutdown => true,
                SubmitError::TooLarge { .. } | SubmitError::EngineVersionTooLow { .. } => false,
            },
            Self::Rejected(rejection) => match rejection.code().kind() {
                RejectionKind::Stale | RejectionKind::Exhausted => true,
                RejectionKind::NotFound
                | RejectionKind::Invalid
                | RejectionKind::Conflict
                | RejectionKind::Unauthenticated
                | RejectionKind::Forbidden
                | RejectionKind::Internal => false,
            },
            Self::Read(error) => !matches!(error, ReadError::Store(_)),
            Self::PollClosed(_) => true,
            Self::Reply(_) | Self::SchemaInvalid(_) | Self::Job(_) => false,
        }
    }
}
