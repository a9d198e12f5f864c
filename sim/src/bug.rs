//! Planted bugs: canaries that the invariants must find, or they prove nothing.

use std::fmt;
use std::str::FromStr;

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A node answers a signal before its entry is committed.
    EarlyAcknowledgement,
    /// The disks say that they have synced the log when they have not.
    LostSync,
    /// A read that should be linearizable shows what the node happens to have.
    StaleRead,
}

impl Bug {
    const ALL: [Self; 3] = [Self::EarlyAcknowledgement, Self::LostSync, Self::StaleRead];

    fn name(self) -> &'static str {
        match self {
            Self::EarlyAcknowledgement => "early-acknowledgement",
            Self::LostSync => "lost-sync",
            Self::StaleRead => "stale-read",
        }
    }

    /// The names of all, for a message.
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
