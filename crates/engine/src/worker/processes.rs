//! The counts of a worker's processes: a row for each that it has registered (A20).

use super::activity::WorkerKey;
use crate::store::StoreError;
use crate::tables::{Process, ProcessRecord, WorkerProcesses};
use crate::turn::Turn;
use std::collections::BTreeSet;

/// Begins to count for processes that are new, and drops the counts of those that are no longer registered.
pub(super) fn follow(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    registered: &[Process],
) -> Result<(), StoreError> {
    let mut missing: BTreeSet<&Process> = registered.iter().collect();
    for row in turn.keys::<WorkerProcesses>(key, usize::MAX)? {
        if !missing.remove(&row.2) {
            turn.delete::<WorkerProcesses>(&row);
        }
    }
    for process in missing {
        let row = (key.0.clone(), key.1.clone(), process.clone());
        turn.put::<WorkerProcesses>(&row, ProcessRecord::default());
    }
    Ok(())
}

/// Deletes the counts of a worker; returns how many rows there were.
pub(super) fn delete(turn: &mut Turn<'_, '_>, key: &WorkerKey) -> Result<usize, StoreError> {
    let rows = turn.keys::<WorkerProcesses>(key, usize::MAX)?;
    for row in &rows {
        turn.delete::<WorkerProcesses>(row);
    }
    Ok(rows.len())
}
