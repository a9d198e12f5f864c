//! One slot of the log: many commands under one stamp (design rules 1–3).

use crate::codec::{self, DecodeError};
use crate::command::Command;
use crate::ids::{ActionName, Namespace, WorkerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A member's number in its cluster; never reused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

/// Time and chance of an entry, set by the leader that proposed it (design rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds since the Unix epoch; the engine keeps it monotonic.
    pub now_ms: u64,
    /// What every random choice of the entry is drawn from.
    pub seed: u64,
    /// The leader.
    pub node: NodeId,
}

/// What a waiting worker would take (design rule 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The worker's namespace.
    pub namespace: Namespace,
    /// The worker.
    pub worker: WorkerId,
    /// Which of the leader's open polls: assignments are delivered to it.
    pub poll: u64,
    /// The actions that it runs.
    pub actions: Vec<ActionName>,
    /// The worker's labels (A3).
    pub labels: BTreeMap<String, String>,
    /// How many tasks it would take.
    pub slots: u32,
}

/// A slot of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its time and seed.
    pub stamp: Stamp,
    /// The open polls at the time of proposal.
    pub offers: Vec<Offer>,
    /// The commands, applied in order.
    pub commands: Vec<Command>,
}

/// The versions of a persisted entry. A released variant is never edited.
#[derive(Serialize, Deserialize)]
enum Versioned {
    V1(Entry),
}

/// The same as [`Versioned`], by reference: serde encodes both alike.
#[derive(Serialize)]
enum VersionedRef<'a> {
    V1(&'a Entry),
}

impl Entry {
    /// The persisted form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(&VersionedRef::V1(self))
    }

    /// Reads the persisted form.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that no version known here has written: the process must end
    /// (design rule 12).
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Versioned::V1(entry) = codec::decode(bytes)?;
        Ok(entry)
    }
}
