//! Targets and locks of runs (W85).

use super::tables;
use crate::definition::Lock;
use crate::ids::{LockNumber, Namespace, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// What a run works on and what it locks. Lives as long as the run.
    89 Exclusions(RunNumber) -> ExclusionRecord => ExclusionRecord::content_bytes;
    /// The open runs with a target and input, by the digest of both: there are several only if each one is above the next
    /// one. Lives while there is such a run.
    90 TargetHolders((Namespace, [u8; 32])) -> Vec<RunNumber>;
    /// The locks that open runs of a namespace hold. Lives while there is one.
    91 OpenLocks(Namespace) -> Vec<OpenLock>;
    /// Locks by number. Live while a run holds the lock.
    92 Locks(LockNumber) -> Lock, HOT => |lock| lock.pattern.len();
    /// How many runs hold a lock. Lives as long as the lock.
    93 LockCounts(LockNumber) -> LockCount;
    /// The runs that hold a lock, in the order in which they got it. Live until the run ends.
    94 LockHolders((LockNumber, u64)) -> RunNumber;
}

/// What a run works on and what it locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionRecord {
    /// Its target.
    pub target: Option<RunTargetValue>,
    /// The patterns of its locks, each once.
    pub patterns: Vec<String>,
    /// Whether the start gave the target, instead of the definition.
    pub is_target_given: bool,
    /// Whether the start gave the locks, instead of the definition.
    pub are_locks_given: bool,
}

impl ExclusionRecord {
    fn content_bytes(&self) -> usize {
        let target = self.target.as_ref().map_or(0, |target| target.text.len());
        target + self.patterns.iter().map(String::len).sum::<usize>()
    }
}

/// The target of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTargetValue {
    /// The text that locks are compared with.
    pub text: String,
    /// The SHA-256 digest of the target and the input.
    pub digest: [u8; 32],
}

/// A lock that some run of the namespace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLock {
    /// The lock.
    pub number: LockNumber,
    /// The SHA-256 digest of its pattern.
    pub digest: [u8; 32],
    /// The number of instructions of its program.
    pub instructions_count: u32,
}

/// How many runs hold a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockCount {
    /// The number of runs that hold it.
    pub holders_count: u64,
    /// The position of the next one.
    pub next_position: u64,
    /// No holder has a lower position. Searches start here to skip the tombstones of deleted rows.
    pub first_holder: u64,
}
