//! Decisions about approvals (W61).

use super::tables;
use crate::ids::{Comment, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// By run, activation of the step and arrival, from 0. Live until the step is left.
    82 Decisions((RunNumber, u64, u16)) -> DecisionRecord;
}

/// A decision about an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Whether it is an approval; otherwise, it is a rejection.
    pub is_approved: bool,
    /// Its comment.
    pub comment: Option<Comment>,
    /// When it was made, in milliseconds.
    pub at_ms: u64,
}
