//! Retention of ended runs and action runs (W4).

use super::{Key, tables};
use crate::ids::{ActionRunNumber, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// Ended runs and ended stand-alone action runs, by when their retention ends. Live as long as the items that they
    /// name.
    43 Expirations(Expiration) -> ();
    /// Deleted runs with rows that did not fit into the sweep. Live until later sweeps have deleted the rest.
    44 RunRemains(RunNumber) -> ();
}

/// When the retention of an item ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Expiration {
    /// When it ends, in milliseconds.
    pub due_ms: u64,
    /// The item.
    pub subject: Expiring,
}

/// An item with a retention. The byte is part of the key and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Expiring {
    /// A workflow run, with its action runs.
    Run(RunNumber),
    /// A stand-alone action run (A2).
    ActionRun(ActionRunNumber),
}

impl Key for Expiration {
    fn encode(&self, out: &mut Vec<u8>) {
        self.due_ms.encode(out);
        match self.subject {
            Expiring::Run(number) => (1_u8, number).encode(out),
            Expiring::ActionRun(number) => (2_u8, number).encode(out),
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let due_ms = u64::decode(bytes)?;
        let subject = match <(u8, u64)>::decode(bytes)? {
            (1, number) => Expiring::Run(RunNumber(number)),
            (2, number) => Expiring::ActionRun(ActionRunNumber(number)),
            _ => return None,
        };
        Some(Self { due_ms, subject })
    }
}
