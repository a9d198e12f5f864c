//! Deleting items whose retention has ended, in bounded batches.

use super::rows::{forget_action_run, forget_run, sweep_remains};
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::Done;
use crate::run;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{ActionRuns, Expiration, Expirations, Expiring, RunRemains};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Deletes runs and stand-alone action runs whose retention has ended: first the rest of earlier sweeps, then the
/// longest expired, until its budget of rows is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRuns {}

/// Things that one sweep looks at, at most: each is at least this many rows.
const SUBJECTS_MAX: usize = SWEEP_ROWS_MAX / 4;

impl SweepRuns {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let mut rows_left = SWEEP_ROWS_MAX;
        for number in turn.keys::<RunRemains>(&(), SUBJECTS_MAX)? {
            if rows_left > 0 {
                sweep_remains(turn, number, &mut rows_left)?;
            }
        }
        let mut from_ms = turn.now_ms();
        let due = due(turn)?;
        // What begins to expire meanwhile lowers it.
        turn.cluster_mut().expirations_from_ms = u64::MAX;
        for (position, expiration) in due.into_iter().enumerate() {
            if rows_left == 0 || position == SUBJECTS_MAX {
                from_ms = expiration.due_ms;
                break;
            }
            if is_in_quarantine(turn, expiration.subject)? {
                // Kept for the investigation of the bug, and until it is released (design rule 10).
                turn.delete::<Expirations>(&expiration);
                continue;
            }
            match expiration.subject {
                Expiring::Run(number) => {
                    turn.attribute_to(Subject::RunNumber(number));
                    forget_run(turn, number, &mut rows_left)?;
                }
                Expiring::ActionRun(number) => {
                    turn.attribute_to(Subject::ActionRun(number));
                    turn.delete::<Expirations>(&expiration);
                    forget_action_run(turn, number, &mut rows_left)?;
                }
            }
        }
        let cluster = turn.cluster_mut();
        cluster.expirations_from_ms = cluster.expirations_from_ms.min(from_ms);
        Ok(Done {})
    }
}

/// What has expired, the longest first: one more than a sweep looks at, at most.
fn due(turn: &mut Turn<'_, '_>) -> Result<Vec<Expiration>, StoreError> {
    let now_ms = turn.now_ms();
    let from_ms = turn.cluster().expirations_from_ms;
    let mut due = Vec::new();
    turn.visit_from::<Expirations>(&(), &from_ms, |expiration, _| {
        if expiration.due_ms > now_ms || due.len() > SUBJECTS_MAX {
            return ControlFlow::Break(());
        }
        due.push(expiration);
        ControlFlow::Continue(())
    })?;
    Ok(due)
}

fn is_in_quarantine(turn: &mut Turn<'_, '_>, subject: Expiring) -> Result<bool, StoreError> {
    match subject {
        // Its parent gets its result once it is released.
        Expiring::Run(number) => {
            let is_kept = run::is_awaited(turn, number)? || run::is_first_of_kept(turn, number)?;
            Ok(is_kept || turn.is_quarantined(number))
        }
        Expiring::ActionRun(number) => {
            let record = turn.get::<ActionRuns>(&number)?;
            Ok(record.is_some_and(|record| turn.is_task_quarantined(number, &record)))
        }
    }
}
