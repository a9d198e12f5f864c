//! Decisions about approvals (W61).

use super::tables;
use crate::ids::{Comment, Identity, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// By run, activation of the step and position, from 0: the oldest first, and one for each identity. Live until the step is left.
    82 Decisions((RunNumber, u64, u16)) -> DecisionRecord;
}

/// A decision about an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Whether it is an approval; otherwise, it is a rejection.
    pub is_approved: bool,
    /// The identity that made it; `None` for a caller without a credential.
    pub actor: Option<Identity>,
    /// Its comment.
    pub comment: Option<Comment>,
    /// When it was made, in milliseconds.
    pub at_ms: u64,
}
