//! The rows of a simulated machine.

use super::volatile::{Contents, Volatile};
use crate::random::Random;
use flotilla_engine::store::{KeyRange, MemoryStore, Order, Reader, StoreError, Visitor, Writes};
use flotilla_replica::{Incoming, SharedReader, StateStore};
use std::sync::{Arc, PoisonError, RwLock};

/// The rows of a simulated machine; clones share them.
#[derive(Clone, Default)]
pub(crate) struct SimulatedState {
    rows: Arc<RwLock<Kept>>,
}

#[derive(Default)]
struct Kept {
    contents: Volatile<MemoryStore>,
    captured: Option<Arc<MemoryStore>>,
    captures_count: u64,
    installs_count: u64,
}

impl Contents for MemoryStore {
    type Write = Writes;

    fn carry_out(&mut self, write: &Writes) {
        self.write(write);
    }
}

impl SimulatedState {
    /// Power is restored; some of the unflushed rows are gone.
    pub(crate) fn cut_power(&self, random: &mut Random) -> u64 {
        self.change(|kept| kept.contents.cut_power(random))
    }

    /// How many snapshots were made here, and how many from others were installed.
    pub(crate) fn snapshots(&self) -> (u64, u64) {
        self.look(|kept| (kept.captures_count, kept.installs_count))
    }

    fn look<T>(&self, look: impl FnOnce(&Kept) -> T) -> T {
        look(&self.rows.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        change(&mut self.rows.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reader for SimulatedState {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.look(|kept| kept.contents.current().get(key))
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        self.look(|kept| kept.contents.current().scan(range, order, visitor))
    }
}

impl StateStore for SimulatedState {
    fn reader(&self) -> Arc<dyn SharedReader> {
        Arc::new(self.clone())
    }

    fn frozen(&self, read: &mut dyn FnMut(&dyn Reader)) {
        self.look(|kept| read(kept.contents.current()));
    }

    fn write(&self, writes: &Writes) -> Result<(), StoreError> {
        self.change(|kept| kept.contents.write(writes.clone()));
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.change(|kept| kept.contents.sync());
        Ok(())
    }

    /// Nothing is durable before an explicit flush: a simulated process may lose everything else.
    fn limit_buffers(&self, _percent: u32) -> Result<(), StoreError> {
        Ok(())
    }

    fn capture(&self) -> Result<Arc<dyn SharedReader>, StoreError> {
        self.change(|kept| {
            kept.contents.sync();
            let captured = Arc::new(kept.contents.current().clone());
            kept.captured = Some(Arc::clone(&captured));
            kept.captures_count += 1;
            Ok(captured as Arc<dyn SharedReader>)
        })
    }

    fn captured(&self) -> Option<Arc<dyn SharedReader>> {
        let captured = self.look(|kept| kept.captured.clone())?;
        Some(captured)
    }

    fn receive(&self) -> Result<Box<dyn Incoming>, StoreError> {
        Ok(Box::new(Received {
            rows: MemoryStore::default(),
            state: self.clone(),
        }))
    }
}

/// Rows that are being received.
struct Received {
    rows: MemoryStore,
    state: SimulatedState,
}

impl Incoming for Received {
    fn write(&mut self, writes: &Writes) -> Result<(), StoreError> {
        self.rows.write(writes);
        Ok(())
    }

    fn reader(&self) -> &dyn Reader {
        &self.rows
    }

    fn install(self: Box<Self>) -> Result<(), StoreError> {
        let Self { rows, state } = *self;
        state.change(|kept| {
            kept.contents.replace(rows);
            kept.captured = None;
            kept.installs_count += 1;
        });
        Ok(())
    }
}
