//! The result of an attempt to have the leader execute something, and why an attempt fails.

use crate::lifecycle::NotServing;

/// Why a command has no reply from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Certainly not executed: too many commands are queued.
    #[error("too many commands are queued; retry in {retry_after_ms} ms")]
    Overloaded {
        /// The retry delay, in milliseconds.
        retry_after_ms: u64,
    },
    /// Certainly not executed: no leader took it within the deadline, or within the time of an
    /// election.
    #[error("no leader took the command in time")]
    NoLeader,
    /// Certainly not executed: this node waits to be added, or for its cluster to be formed.
    #[error("this node is not a member of a cluster yet")]
    NodeNotMember,
    /// It may have been executed, or may still be.
    #[error("it is unknown whether the command was executed")]
    Unknown,
    /// Certainly not executed: the leader's disk, or the disks of too many members, are nearly
    /// full.
    #[error("the disks of too many members are nearly full")]
    DiskLow,
    /// Certainly not executed: it is larger than a log entry.
    #[error("expected a command of at most {bytes_max} bytes, but it has {bytes}")]
    TooLarge {
        /// The command's encoded size.
        bytes: usize,
        /// The maximum size of a command.
        bytes_max: usize,
    },
    /// Certainly not executed: not every member knows this command yet (design rule 12).
    #[error("the command needs engine version {needed}, but the cluster has agreed on {agreed}")]
    EngineVersionTooLow {
        /// The version that introduced the command.
        needed: u32,
        /// The agreed version.
        agreed: u32,
    },
    /// Certainly not executed: this replica stopped serving (design rule 11).
    #[error("this replica's state differs from the majority's")]
    Diverged,
    /// Certainly not executed: the replica has ended.
    #[error("the replica has ended")]
    Shutdown,
}

impl From<NotServing> for SubmitError {
    fn from(reason: NotServing) -> Self {
        match reason {
            NotServing::Shutdown => Self::Shutdown,
            NotServing::Diverged => Self::Diverged,
        }
    }
}

/// The result of one attempt.
pub(crate) enum Attempt<T> {
    Done(T),
    /// Certainly not proposed; worth another attempt.
    NotLeader,
    Failed(SubmitError),
}
