//! Request ids of accepted commands (design rule 9).

use super::tables;
use crate::ids::Namespace;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By namespace and id. Live for the request window, even if the namespace is deleted.
    23 Requests((Namespace, u128)) -> RequestRecord;
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
    /// The ids. At least one.
    pub by_namespace: BTreeMap<Namespace, AcceptedRequests>,
}

impl RequestAgeRecord {
    /// Adds an id, which counts for `bytes`.
    pub(crate) fn add(&mut self, namespace: &Namespace, id: u128, bytes: u64) {
        let accepted = match self.by_namespace.get_mut(namespace) {
            Some(accepted) => accepted,
            None => self.by_namespace.entry(namespace.clone()).or_default(),
        };
        accepted.bytes += bytes;
        accepted.ids.push(id);
    }
}

/// The request ids of a namespace that one entry accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRequests {
    /// Their size as counted in the cluster's record. In bytes.
    pub bytes: u64,
    /// The ids, in the order of the entry's commands. At least one.
    pub ids: Vec<u128>,
}
