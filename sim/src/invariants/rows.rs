//! Reads the rows of a table for the invariants.

use flotilla_engine::rows::{Key, Table, encode_prefix, visit};
use flotilla_engine::store::{KeyRange, MemoryStore, Order};
use std::ops::ControlFlow;

/// The records whose keys start with these parts, by key.
pub(super) fn rows<T: Table>(store: &MemoryStore, prefix: &impl Key) -> Vec<(T::Key, T::Record)> {
    let range = KeyRange::prefix(&encode_prefix::<T>(prefix));
    let mut rows = Vec::new();
    visit::<T>(store, &range, Order::Ascending, |key, record| {
        rows.push((key, record));
        ControlFlow::Continue(())
    })
    .expect("memory does not fail, and the engine reads what it wrote");
    rows
}
