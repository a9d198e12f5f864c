//! The contents of a log device in memory, for devices of tests and simulations.

use crate::log::device::{Fact, Operation, RecordVisitor};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Records and facts, as [`Operation`]s leave them.
#[derive(Clone, Debug, Default)]
pub struct LogContents {
    /// The records by index.
    pub records: BTreeMap<u64, Bytes>,
    /// All facts.
    pub facts: BTreeMap<Fact, Vec<u8>>,
}

impl LogContents {
    /// Executes all operations, in order.
    pub fn carry_out(&mut self, operations: &[Operation]) {
        for operation in operations {
            match operation {
                Operation::Put { index, record } => {
                    self.records.insert(*index, record.clone());
                }
                Operation::Truncate { from } => drop(self.records.split_off(from)),
                Operation::Purge { to } => self.records = self.records.split_off(&(to + 1)),
                Operation::Set { fact, bytes } => {
                    self.facts.insert(*fact, bytes.clone());
                }
            }
        }
    }

    /// Visits the records with `from <= index < to` in order.
    pub fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) {
        for (index, record) in self.records.range(from..to.max(from)) {
            if !visitor(*index, record.clone()) {
                break;
            }
        }
    }
}
