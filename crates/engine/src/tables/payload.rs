//! Payloads, stored once and referenced (design rule 4).

use super::{Key, tables};
use crate::ids::{ActionRunNumber, RunNumber};
use crate::json::Json;
use crate::limits::PAYLOAD_PART_BYTES;
use serde::{Deserialize, Serialize};

tables! {
    /// By owner, in order of arrival. Live as long as their owner; payloads of a run with a trimmed history only while
    /// something refers to them.
    9 Payloads(PayloadRef) -> StoredPayload => StoredPayload::content_bytes;
    /// Payloads of runs, by position, that outlive the record of the turn that stored them: the last event that refers
    /// to them, or a trimmed one if a row of another table refers to them. Live as long as the payload.
    66 PayloadsHeld((RunNumber, u64)) -> u64;
}

/// A payload as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredPayload {
    /// The text itself.
    Text(Json),
    /// The text of a mapping, without the large parts that it has in common with the input of its run.
    Parts(Vec<PayloadPart>),
}

/// A part of a payload's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayloadPart {
    /// The text itself.
    Text(String),
    /// A range of the text of the run's input, in bytes. The input is itself stored as text, and lives as long as its
    /// run.
    Input {
        /// The first byte.
        from: u32,
        /// The first byte after it.
        to: u32,
    },
}

impl PayloadPart {
    /// The part's text in a run with this input.
    pub(crate) fn text<'p>(&'p self, input: &'p str) -> &'p str {
        match self {
            Self::Text(text) => text,
            Self::Input { from, to } => &input[*from as usize..*to as usize],
        }
    }
}

/// The text that parts make in a run with this input.
pub(crate) fn join_parts(parts: &[PayloadPart], input: &Json) -> Json {
    let texts = parts.iter().map(|part| part.text(input.as_str()));
    Json::from_checked(texts.collect::<String>())
}

impl StoredPayload {
    /// What the row takes, in bytes.
    fn content_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.as_str().len(),
            Self::Parts(parts) => {
                let texts = parts.iter().map(|part| match part {
                    PayloadPart::Text(text) => text.len(),
                    PayloadPart::Input { .. } => 0,
                });
                parts.len() * PAYLOAD_PART_BYTES + texts.sum::<usize>()
            }
        }
    }
}

impl From<Json> for StoredPayload {
    fn from(text: Json) -> Self {
        Self::Text(text)
    }
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

impl PayloadRef {
    /// The input of the owner.
    #[must_use]
    pub fn input_of(owner: PayloadOwner) -> Self {
        Self { owner, position: 0 }
    }
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
