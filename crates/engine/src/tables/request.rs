//! Request ids of accepted commands (design rule 9).

use super::tables;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};

tables! {
    /// By id. Live for the request window.
    23 Requests(u128) -> RequestRecord;
    /// The ids in the order in which they were accepted, without gaps; the cluster's record has the first place and the
    /// count. Live as long as the id.
    27 RequestAges(u64) -> RequestAgeRecord;
}

/// The remembered reply to an accepted request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Its place in the order of age.
    pub sequence: u64,
    /// When it was accepted, in milliseconds.
    pub at_ms: u64,
    /// The fingerprint of the command, which detects a different command with the same id.
    pub fingerprint: u64,
    /// The reply.
    pub reply: Reply,
}

/// A request id's age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAgeRecord {
    /// The id.
    pub id: u128,
    /// When it was accepted, in milliseconds.
    pub at_ms: u64,
    /// Its size as counted in the cluster's record. In bytes.
    pub bytes: u64,
}
