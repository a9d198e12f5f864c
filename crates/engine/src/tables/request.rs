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
    /// The ids that are remembered for a namespace, by its name. Lives as long as there are any.
    101 RequestUsages(Namespace) -> RequestUsage, HOT;
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
    /// Adds an id, which takes `bytes`.
    pub(crate) fn add(&mut self, namespace: &Namespace, id: u128, bytes: u64) {
        let accepted = match self.by_namespace.get_mut(namespace) {
            Some(accepted) => accepted,
            None => self.by_namespace.entry(namespace.clone()).or_default(),
        };
        accepted.ids.push(id);
        accepted.bytes += bytes;
    }
}

/// The request ids of a namespace that one entry accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRequests {
    /// What they take, in bytes.
    pub bytes: u64,
    /// The ids, in the order of the entry's commands. At least one.
    pub ids: Vec<u128>,
}

impl AcceptedRequests {
    /// What the ids count for.
    #[must_use]
    pub fn usage(&self) -> RequestUsage {
        RequestUsage {
            count: self.ids.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// A number of remembered request ids, with their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestUsage {
    /// The number of ids.
    pub count: u64,
    /// What they take, in bytes.
    pub bytes: u64,
}

impl RequestUsage {
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }

    pub(crate) fn subtract(&mut self, other: Self) {
        self.count -= other.count;
        self.bytes -= other.bytes;
    }
}
