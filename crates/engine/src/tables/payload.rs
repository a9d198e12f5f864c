//! Payloads, stored once and referenced (design rule 4).

use super::{Key, tables};
use crate::ids::{ActionRunNumber, RunNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// By owner, in order of arrival. Live as long as their owner; payloads of a run with a trimmed history only while
    /// something refers to them.
    9 Payloads(PayloadRef) -> Json => |payload| payload.as_str().len();
    /// Payloads of runs, by position, that outlive the record of the turn that stored them: the last event that refers
    /// to them, or a trimmed one if a row of another table refers to them. Live as long as the payload.
    66 PayloadsHeld((RunNumber, u64)) -> u64;
}

/// The owner of a payload; deleting the owner deletes the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PayloadOwner {
    /// A workflow run; also the payloads of its action runs.
    Run(RunNumber),
    /// A stand-alone action run (A2).
    ActionRun(ActionRunNumber),
}

/// Where a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PayloadRef {
    /// Its owner.
    pub owner: PayloadOwner,
    /// Its position among the owner's payloads; 0 is the input.
    pub position: u64,
}

impl Key for PayloadOwner {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Run(number) => (1_u8, number.0).encode(out),
            Self::ActionRun(number) => (2_u8, number.0).encode(out),
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        match <(u8, u64)>::decode(bytes)? {
            (1, number) => Some(Self::Run(RunNumber(number))),
            (2, number) => Some(Self::ActionRun(ActionRunNumber(number))),
            _ => None,
        }
    }
}

impl Key for PayloadRef {
    fn encode(&self, out: &mut Vec<u8>) {
        self.owner.encode(out);
        self.position.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            owner: PayloadOwner::decode(bytes)?,
            position: u64::decode(bytes)?,
        })
    }
}
