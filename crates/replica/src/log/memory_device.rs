//! A log device for tests: in memory, with power cuts and failures on request.

use crate::log::contents::LogContents;
use crate::log::device::{DeviceError, Durability, Fact, LogDevice, Operation, RecordVisitor};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A log device in memory, with power cuts and failures on request.
#[derive(Default)]
pub(crate) struct MemoryDevice {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: LogContents,
    /// Writes since the last sync, oldest first.
    unsynced: Vec<Vec<Operation>>,
    durable: LogContents,
    is_failing: bool,
    syncs: usize,
}

impl MemoryDevice {
    /// The device after a power cut that spares the first `spared` writes since the last sync.
    pub(crate) fn after_power_cut(&self, spared: usize) -> Self {
        let state = self.state();
        let mut left = state.durable.clone();
        for operations in state.unsynced.iter().take(spared) {
            left.carry_out(operations);
        }
        let left = State {
            current: left.clone(),
            durable: left,
            ..State::default()
        };
        Self {
            state: Mutex::new(left),
        }
    }

    /// Makes every later write fail.
    pub(crate) fn fail(&self) {
        self.state().is_failing = true;
    }

    /// The number of syncs.
    pub(crate) fn syncs(&self) -> usize {
        self.state().syncs
    }

    /// Alters a byte of a record silently.
    pub(crate) fn corrupt(&self, index: u64) {
        let mut state = self.state();
        let record = state
            .current
            .records
            .get_mut(&index)
            .expect("the record to corrupt is there");
        let mut bytes = record.to_vec();
        *bytes.last_mut().expect("a record has bytes") ^= 1;
        *record = bytes.into();
    }

    /// Removes a record silently.
    pub(crate) fn lose(&self, index: u64) {
        self.state().current.records.remove(&index);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogDevice for MemoryDevice {
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError> {
        Ok(self.state().current.facts.clone())
    }

    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError> {
        let contents = self.state().current.clone();
        contents.read(from, to, visitor);
        Ok(())
    }

    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError> {
        let mut state = self.state();
        if state.is_failing {
            return Err(DeviceError("the disk is gone".into()));
        }
        state.current.carry_out(operations);
        state.unsynced.push(operations.to_vec());
        if durability == Durability::Synced {
            state.syncs += 1;
            state.durable = state.current.clone();
            state.unsynced.clear();
        }
        Ok(())
    }
}
