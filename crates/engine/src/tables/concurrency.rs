//! Concurrency keys, the runs that hold them and the runs that wait for them (W84).

use super::{Key, tables};
use crate::ids::{
    ConcurrencyKeyNumber, ConcurrencyName, IdempotencyKey, Namespace, RunNumber, WorkflowName,
};
use serde::{Deserialize, Serialize};

tables! {
    /// The numbers of concurrency keys. Live while a run holds or awaits the key.
    84 ConcurrencyKeyNumbers(ConcurrencyKey) -> ConcurrencyKeyNumber;
    /// Concurrency keys by number. Live as long as the number.
    85 ConcurrencyKeys(ConcurrencyKeyNumber) -> ConcurrencyKeyRecord;
    /// The runs that hold a concurrency key, in the order in which they got it. Live until the run ends.
    86 ConcurrencyHolders((ConcurrencyKeyNumber, u64)) -> RunNumber;
    /// The runs that wait for a concurrency key, in the order in which they asked for it. Live until the run begins or is
    /// cancelled.
    87 ConcurrencyQueue((ConcurrencyKeyNumber, u64)) -> RunNumber;
    /// The idempotency keys of starts that returned this run because of `onLimit: existing`, each with the workflow that
    /// the start named. Live as long as the run.
    88 BoundIdempotencyKeys((RunNumber, IdempotencyKey, WorkflowName)) -> Namespace;
}

/// A value that limits how many runs hold it at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyKey {
    /// The namespace of the runs.
    pub namespace: Namespace,
    /// Which runs share the key.
    pub sharing: KeySharing,
    /// The value as canonical JSON text, or `sha256:` and its digest if it is long.
    pub value: String,
}

/// Which runs share a concurrency key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeySharing {
    /// Those of the workflow.
    Workflow(WorkflowName),
    /// Those of all workflows with a limit of this name.
    Named(ConcurrencyName),
}

/// How many runs hold a concurrency key, and how many wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyKeyRecord {
    /// The key.
    pub key: ConcurrencyKey,
    /// The number of runs that hold it.
    pub holders_count: u32,
    /// The number of runs that wait for it.
    pub waiting_count: u32,
    /// The next position among those that hold it, and among those that wait for it.
    pub next_position: u64,
    /// No holder has a lower position. Searches start here to skip the tombstones of deleted rows.
    pub first_holder: u64,
    /// No run that waits for it has a lower position.
    pub first_waiting: u64,
}

impl ConcurrencyKeyRecord {
    /// A key that no run holds or awaits yet.
    pub(crate) fn new(key: ConcurrencyKey) -> Self {
        Self {
            key,
            holders_count: 0,
            waiting_count: 0,
            next_position: 0,
            first_holder: 0,
            first_waiting: 0,
        }
    }

    /// Counts a run that holds the key or waits for it; returns its position.
    pub(crate) fn join(&mut self, is_held: bool) -> u64 {
        let position = self.next_position;
        self.next_position += 1;
        let (count, first) = self.side(is_held);
        if *count == 0 {
            *first = position;
        }
        *count += 1;
        position
    }

    /// No longer counts the run at a position.
    pub(crate) fn leave(&mut self, position: u64, is_held: bool) {
        let (count, first) = self.side(is_held);
        *count -= 1;
        if *first == position {
            *first = position + 1;
        }
    }

    fn side(&mut self, is_held: bool) -> (&mut u32, &mut u64) {
        match is_held {
            true => (&mut self.holders_count, &mut self.first_holder),
            false => (&mut self.waiting_count, &mut self.first_waiting),
        }
    }

    /// Whether no run holds it or waits for it.
    pub(crate) fn is_unused(&self) -> bool {
        self.holders_count == 0 && self.waiting_count == 0
    }
}

impl Key for ConcurrencyKey {
    fn encode(&self, out: &mut Vec<u8>) {
        self.namespace.encode(out);
        match &self.sharing {
            KeySharing::Workflow(name) => {
                out.push(1);
                name.encode(out);
            }
            KeySharing::Named(name) => {
                out.push(2);
                name.encode(out);
            }
        }
        // JSON text has no zero byte.
        out.extend_from_slice(self.value.as_bytes());
        out.push(0);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let namespace = Key::decode(bytes)?;
        let sharing = match u8::decode(bytes)? {
            1 => KeySharing::Workflow(Key::decode(bytes)?),
            2 => KeySharing::Named(Key::decode(bytes)?),
            _ => return None,
        };
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let (value, rest) = bytes.split_at(end);
        let value = std::str::from_utf8(value).ok()?.to_owned();
        *bytes = &rest[1..];
        Some(Self {
            namespace,
            sharing,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_concurrency_key_survives_its_encoding() {
        let name = WorkflowName::new("order").expect("a name");
        let shared = ConcurrencyName::new("order").expect("a name");
        for sharing in [KeySharing::Workflow(name), KeySharing::Named(shared)] {
            let key = ConcurrencyKey {
                namespace: Namespace::default_namespace(),
                sharing,
                value: "\"vm-1\"".to_owned(),
            };
            let mut bytes = Vec::new();
            key.encode(&mut bytes);
            assert_eq!(ConcurrencyKey::decode(&mut bytes.as_slice()), Some(key));
            assert_eq!(ConcurrencyKey::decode(&mut &bytes[..bytes.len() - 1]), None);
        }
    }
}
