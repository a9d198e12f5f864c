//! Request ids of accepted commands (design rule 9).

use super::tables;
use crate::command_scope::CommandScope;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By scope and id. Live for the request window, even if the namespace is deleted.
    23 Requests((CommandScope, u128)) -> RequestRecord;
    /// The ids that an entry accepted, by the entry's index in the log. Lives as long as the ids.
    27 RequestAges(u64) -> RequestAgeRecord;
    /// The ids that are remembered for a namespace, or for commands of the cluster. Lives as long as there are any.
    101 RequestUsages(CommandScope) -> RequestUsage, HOT;
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
    pub by_scope: BTreeMap<CommandScope, AcceptedRequests>,
}

impl RequestAgeRecord {
    /// Adds an id, which takes `bytes`.
    pub(crate) fn add(&mut self, scope: &CommandScope, id: u128, bytes: u64) {
        let accepted = match self.by_scope.get_mut(scope) {
            Some(accepted) => accepted,
            None => self.by_scope.entry(scope.clone()).or_default(),
        };
        accepted.ids.push(id);
        accepted.bytes += bytes;
    }
}

/// The request ids of one scope that one entry accepted.
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
