//! Payloads, stored once and referenced (design rule 4).

use super::{Key, KeyBytes, tables};
use crate::ids::{ActionRunNumber, RunNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// By owner, in order of arrival. Live as long as their owner.
    9 Payloads(PayloadRef) -> Json => |payload| payload.as_str().len();
}

/// Whom a payload belongs to, and with whom it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PayloadOwner {
    /// A workflow run; also the payloads of its action runs.
    Run(RunNumber),
    /// An action run outside any workflow (A2).
    ActionRun(ActionRunNumber),
}

/// Where a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PayloadRef {
    /// Its owner.
    pub owner: PayloadOwner,
    /// Its position among the owner's payloads; 0 is the input.
    pub position: u32,
}

impl Key for PayloadRef {
    fn encode(&self, out: &mut KeyBytes) {
        match self.owner {
            PayloadOwner::Run(number) => (1_u8, number.0).encode(out),
            PayloadOwner::ActionRun(number) => (2_u8, number.0).encode(out),
        }
        self.position.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let owner = match <(u8, u64)>::decode(bytes)? {
            (1, number) => PayloadOwner::Run(RunNumber(number)),
            (2, number) => PayloadOwner::ActionRun(ActionRunNumber(number)),
            _ => return None,
        };
        Some(Self {
            owner,
            position: u32::decode(bytes)?,
        })
    }
}
