//! Why a turn ends without a reply.

use crate::access_rejection::AccessRejection;
use crate::quota_rejection::QuotaRejection;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::workflow_rejection::WorkflowRejection;

/// Why a turn ends without a reply.
#[derive(Debug)]
pub(crate) enum Abort {
    /// The command is rejected; the turn's writes are rolled back.
    Rejected(Rejection),
    /// The store failed; the process must exit.
    Store(StoreError),
}

impl From<WorkflowRejection> for Abort {
    fn from(rejection: WorkflowRejection) -> Self {
        Rejection::from(rejection).into()
    }
}

impl From<AccessRejection> for Abort {
    fn from(rejection: AccessRejection) -> Self {
        Rejection::from(rejection).into()
    }
}

impl From<QuotaRejection> for Abort {
    fn from(rejection: QuotaRejection) -> Self {
        Rejection::from(rejection).into()
    }
}

impl From<Rejection> for Abort {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<StoreError> for Abort {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The result of every function that works in a turn.
pub(crate) type TurnResult<T> = Result<T, Abort>;
