//! Quarantined items: what a panic took out of service (design rule 10).

use super::{Key, tables};
use serde::{Deserialize, Serialize};

tables! {
    /// By kind and number. Live until an operator releases them.
    24 Quarantine(QuarantinedItem) -> QuarantineRecord;
}

/// A quarantined item: its kind and its number.
pub type QuarantinedItem = (QuarantinedKind, u64);

/// What can be quarantined. The byte is part of the key and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum QuarantinedKind {
    /// A workflow run.
    Run,
    /// A stand-alone action run.
    ActionRun,
    /// A worker's timer.
    Worker,
    /// The schedule of a definition.
    Schedule,
    /// A stream, because its timer failed.
    Stream,
    /// A consumer group, because its timer failed.
    Group,
    /// The trigger of a definition.
    Trigger,
    /// A plan's timer: expired cached results are evicted only by newer ones.
    Plan,
}

impl QuarantinedKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Run,
        Self::ActionRun,
        Self::Worker,
        Self::Schedule,
        Self::Stream,
        Self::Group,
        Self::Trigger,
        Self::Plan,
    ];

    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::ActionRun => "action_run",
            Self::Worker => "worker",
            Self::Schedule => "schedule",
            Self::Stream => "stream",
            Self::Group => "group",
            Self::Trigger => "trigger",
            Self::Plan => "plan",
        }
    }
}

impl Key for QuarantinedKind {
    fn encode(&self, out: &mut Vec<u8>) {
        let byte: u8 = match self {
            Self::Run => 1,
            Self::ActionRun => 2,
            Self::Worker => 3,
            Self::Schedule => 4,
            Self::Stream => 5,
            Self::Group => 6,
            Self::Trigger => 7,
            Self::Plan => 8,
        };
        byte.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        match u8::decode(bytes)? {
            1 => Some(Self::Run),
            2 => Some(Self::ActionRun),
            3 => Some(Self::Worker),
            4 => Some(Self::Schedule),
            5 => Some(Self::Stream),
            6 => Some(Self::Group),
            7 => Some(Self::Trigger),
            8 => Some(Self::Plan),
            _ => None,
        }
    }
}

/// When the item was quarantined; the reason is in the log of the node that led then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRecord {
    /// In milliseconds.
    pub at_ms: u64,
    /// The entry's place in the log.
    pub raft_index: u64,
}
