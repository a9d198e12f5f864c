//! Planted bugs: if the invariants do not find these canaries, they prove nothing.

use flotilla_leader::PlantedBug;
use std::fmt;
use std::str::FromStr;

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A bug of the leader's parts.
    InLeader(PlantedBug),
    /// The peers of another cluster are taken for those of one's own.
    ForgedSender,
    /// A node answers a signal before its entry is committed.
    EarlyAcknowledgement,
    /// A node submits commands without their actors.
    LostActor,
    /// The stored definition of trips lacks the compensation of a step, as if the engine lost it.
    LostCompensation,
    /// The stored definition of trips lacks the `onCancel` of a step, as if the engine did not call it.
    LostHandler,
    /// The stored definition of trips has a loop over fewer items, as if the engine lost one.
    LostItem,
    /// The disks report a sync of the log that they have not done.
    LostSync,
    /// A read that should be linearizable returns the local state of the node.
    StaleRead,
    /// A leader does not check who calls its worker service.
    UncheckedCall,
}

impl Bug {
    const ALL: [Self; 14] = [
        Self::InLeader(PlantedBug::DoubleLease),
        Self::InLeader(PlantedBug::LostChecks),
        Self::InLeader(PlantedBug::LostSlots),
        Self::InLeader(PlantedBug::LostTimer),
        Self::InLeader(PlantedBug::LostWakeup),
        Self::ForgedSender,
        Self::EarlyAcknowledgement,
        Self::LostActor,
        Self::LostCompensation,
        Self::LostHandler,
        Self::LostItem,
        Self::LostSync,
        Self::StaleRead,
        Self::UncheckedCall,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::InLeader(PlantedBug::DoubleLease) => "double-lease",
            Self::InLeader(PlantedBug::LostChecks) => "lost-checks",
            Self::InLeader(PlantedBug::LostSlots) => "lost-slots",
            Self::InLeader(PlantedBug::LostTimer) => "lost-timer",
            Self::InLeader(PlantedBug::LostWakeup) => "lost-wakeup",
            Self::ForgedSender => "forged-sender",
            Self::EarlyAcknowledgement => "early-acknowledgement",
            Self::LostActor => "lost-actor",
            Self::LostCompensation => "lost-compensation",
            Self::LostHandler => "lost-handler",
            Self::LostItem => "lost-item",
            Self::LostSync => "lost-sync",
            Self::StaleRead => "stale-read",
            Self::UncheckedCall => "unchecked-call",
        }
    }

    /// The names of all bugs, for a message.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Bug {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|bug| bug.name() == name);
        found.ok_or_else(|| format!("expected one of {}, but got `{name}`", Self::names()))
    }
}
