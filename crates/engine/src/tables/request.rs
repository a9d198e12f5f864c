//! Request ids of accepted commands (design rule 9).

use super::tables;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};

tables! {
    /// By id. Live for the request window.
    23 Requests(u128) -> RequestRecord;
    /// The ids that an entry accepted, by the entry's index in the log. Lives as long as the ids.
    27 RequestAges(u64) -> RequestAgeRecord;
}

/// The remembered reply to an accepted request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The index of the entry that accepted it.
    pub accepted_by: u64,
    /// When it was accepted, in milliseconds.
    pub at_ms: u64,
    /// The fingerprint of the command, which detects a different command with the same id.
    pub fingerprint: u64,
    /// The reply.
    pub reply: Reply,
}

/// The request ids that one entry accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAgeRecord {
    /// When they were accepted, in milliseconds.
    pub at_ms: u64,
    /// Their size as counted in the cluster's record. In bytes.
    pub bytes: u64,
    /// The ids, in the order of the entry's commands. At least one.
    pub ids: Vec<u128>,
}
