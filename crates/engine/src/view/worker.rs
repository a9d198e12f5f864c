//! Reads the worker registry (A20).

use super::page::{Page, Scope, page, prefix};
use crate::ids::{ActionName, Namespace, WorkerId};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ProcessKind, WorkerActivities, WorkerActivityRecord, WorkerRecord, WorkerState, Workers,
    encode_prefix, read, visit,
};
use std::ops::ControlFlow;

/// A worker.
#[derive(Clone, Debug)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its registration.
    pub record: WorkerRecord,
    /// Its activity.
    pub activity: WorkerActivityRecord,
}

/// The worker `id`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn worker(
    reader: &dyn Reader,
    namespace: &Namespace,
    id: &WorkerId,
) -> Result<Option<WorkerView>, StoreError> {
    let key = (namespace.clone(), id.clone());
    let record = read::<Workers>(reader, &key)?;
    let activity = read::<WorkerActivities>(reader, &key)?;
    let view = record.zip(activity);
    Ok(view.map(|(record, activity)| WorkerView {
        id: id.clone(),
        record,
        activity,
    }))
}

/// The workers of a namespace by id.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workers(
    reader: &dyn Reader,
    namespace: &Namespace,
    (after, limit): (Option<&[u8]>, usize),
) -> Result<Page<WorkerView>, StoreError> {
    let prefix = prefix::<Workers>(namespace);
    page::<Workers, _>(
        reader,
        &Scope::new(&prefix, after, limit),
        |(namespace, id), _| worker(reader, &namespace, &id),
    )
}

/// Whether a healthy worker that does not drain handles the action (W21a).
pub(super) fn has_live_worker(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<bool, StoreError> {
    let range = KeyRange::prefix(&encode_prefix::<Workers>(namespace));
    let mut is_live = false;
    let mut failure = None;
    visit::<Workers>(reader, &range, Order::Ascending, |key, record| {
        let handles = record
            .processes
            .iter()
            .any(|process| process.kind == ProcessKind::Action && process.name == action.as_str());
        if !handles {
            return ControlFlow::Continue(());
        }
        match read::<WorkerActivities>(reader, &key) {
            Ok(activity) => {
                is_live = activity.is_some_and(|activity| {
                    activity.state == WorkerState::Healthy && !activity.is_draining
                });
            }
            Err(error) => failure = Some(error),
        }
        if is_live || failure.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    failure.map_or(Ok(is_live), Err)
}
