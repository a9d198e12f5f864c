//! Request ids of accepted commands (design rule 9).

use super::tables;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};

tables! {
    /// By time bucket and id. Live for the request window, at most `REQUESTS_MAX` of them.
    23 Requests((u64, u128)) -> RequestRecord;
}

/// What an accepted request was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Of the command, so that another one with the same id is noticed.
    pub fingerprint: u64,
    /// The answer.
    pub reply: Reply,
}
