//! What is kept until its time is over (W4).

use super::{Key, KeyBytes, tables};
use crate::ids::{ActionRunNumber, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// Ended runs, and ended action runs outside any workflow, by when they are forgotten. Live as
    /// long as what they name.
    43 Expirations(Expiration) -> ();
    /// Forgotten runs whose rows did not all fit into the sweep that forgot them. Live until the next
    /// ones have swept the rest.
    44 RunRemains(RunNumber) -> RunRemainsRecord;
}

/// When something is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Expiration {
    /// From then on, in milliseconds.
    pub due_ms: u64,
    /// What.
    pub subject: Expiring,
}

/// What is forgotten. The byte is part of the key and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Expiring {
    /// A workflow run, with its action runs.
    Run(RunNumber),
    /// An action run outside any workflow (A2).
    ActionRun(ActionRunNumber),
}

/// What is left of a forgotten run, beside what is found by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRemainsRecord {
    /// Payloads that are left: those at the positions below.
    pub payloads_count: u32,
    /// The last action run that is left; each names the one before it.
    pub last_action_run: Option<ActionRunNumber>,
}

impl Key for Expiration {
    fn encode(&self, out: &mut KeyBytes) {
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
