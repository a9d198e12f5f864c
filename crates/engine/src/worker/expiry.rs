//! Lets the leases of a worker expire (A4).

use super::activity::change;
use super::leases::{self, Watched, row_of, search};
use crate::ids::{ActionRunNumber, WorkerNumber};
use crate::limits::LEASES_EXPIRED_MAX;
use crate::store::{KeyRange, StoreError};
use crate::subject::Subject;
use crate::tables::{LeasePlace, WorkerLeases, WorkerNumbers, encode_key};
use crate::task;
use crate::turn::{Turn, TurnResult};
use std::ops::ControlFlow;

/// Handles the timer of a worker's leases: those that have ended expire, as far as the turn's budget allows.
pub(crate) fn expire_leases(turn: &mut Turn<'_, '_>, worker: WorkerNumber) -> TurnResult<()> {
    let Some(key) = turn.get::<WorkerNumbers>(&worker)? else {
        return Ok(());
    };
    let watch = change(turn, &key, |activity| {
        activity.lease_watch.due_ms = None;
        activity.lease_watch
    })?;
    let watch = watch.expect("a worker with a number has an activity");
    let watched = Watched { worker, watch };
    for task in ended(turn, watched)? {
        if turn.is_spent() {
            break;
        }
        turn.with_subject(Subject::ActionRun(task), |turn| task::expire(turn, task))?;
    }
    Ok(search(turn, &key, watched)?)
}

/// The first tasks whose leases have ended.
fn ended(
    turn: &Turn<'_, '_>,
    Watched { worker, watch }: Watched,
) -> Result<Vec<ActionRunNumber>, StoreError> {
    let key = |end_ms| encode_key::<WorkerLeases>(&row_of(worker, LeasePlace::first_from(end_ms)));
    // Not past the last one that has ended: behind it may be many tombstones.
    let range = KeyRange {
        from: key(watch.ends_from_ms),
        to: key(turn.now_ms() + 1),
    };
    let mut tasks = Vec::new();
    leases::visit(turn, &range, |place| {
        tasks.push(place.task);
        if tasks.len() < LEASES_EXPIRED_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(tasks)
}
