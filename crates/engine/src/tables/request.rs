//! Request ids of accepted commands (design rule 9).

use super::tables;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};

tables! {
    /// By id. Live for the request window.
    23 Requests(u128) -> RequestRecord;
    /// The ids in the order in which they were accepted, without a gap: the cluster's record says
    /// where they begin and how many there are. Live as long as the id.
    27 RequestAges(u64) -> RequestAgeRecord;
}

/// What an accepted request was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Its place in the order of age.
    pub sequence: u64,
    /// When it was accepted, in milliseconds.
    pub at_ms: u64,
    /// Of the command, so that another one with the same id is noticed.
    pub fingerprint: u64,
    /// The answer.
    pub reply: Reply,
}

/// A request id's age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAgeRecord {
    /// The id.
    pub id: u128,
    /// When it was accepted, in milliseconds.
    pub at_ms: u64,
    /// What remembering it takes, counted in the cluster's record. In bytes.
    pub bytes: u64,
}
