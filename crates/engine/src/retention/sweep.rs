//! Forgetting what has expired, in bounded pieces.

use super::rows::{forget_action_run, forget_run, sweep_remains};
use crate::command::Subject;
use crate::effect::Effect;
use crate::ids::Namespace;
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::Done;
use crate::run;
use crate::store::StoreError;
use crate::tables::{ActionRuns, Cluster, Expiration, Expirations, Expiring, RunRemains};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Forgets runs, and action runs outside any workflow, that were kept for long enough: what earlier
/// sweeps left of some first, then the longest expired, until its rows are used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRuns {}

/// Things that one sweep looks at, at most: each is at least this many rows.
const SUBJECTS_MAX: usize = SWEEP_ROWS_MAX / 4;

impl SweepRuns {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        let mut room = SWEEP_ROWS_MAX;
        for (number, remains) in turn.list::<RunRemains>(&(), SUBJECTS_MAX)? {
            if room > 0 {
                let remains = Arc::unwrap_or_clone(remains);
                sweep_remains(turn, number, remains, &mut room)?;
            }
        }
        let mut from_ms = turn.now_ms();
        for (position, expiration) in due(turn)?.into_iter().enumerate() {
            if room == 0 || position == SUBJECTS_MAX {
                from_ms = expiration.due_ms;
                break;
            }
            if is_set_aside(turn, expiration.subject)? {
                // Kept for those who look into the bug, and until it is taken up again (design rule 10).
                turn.delete::<Expirations>(&expiration);
                continue;
            }
            match expiration.subject {
                Expiring::Run(number) => {
                    turn.suspect(Subject::RunNumber(number));
                    forget_run(turn, number, &mut room)?;
                }
                Expiring::ActionRun(number) => {
                    turn.suspect(Subject::ActionRun(number));
                    turn.delete::<Expirations>(&expiration);
                    forget_action_run(turn, number, &mut room)?;
                }
            }
        }
        let mut cluster = turn.cluster()?;
        cluster.expirations_from_ms = from_ms;
        turn.put::<Cluster>(&(), cluster);
        Ok(Done {})
    }
}

/// Lets something expire that a sweep has passed over, unless none has.
pub(crate) fn expire_again(
    turn: &mut Turn<'_, '_>,
    expiration: Expiration,
) -> Result<(), StoreError> {
    if turn.get::<Expirations>(&expiration)?.is_some() {
        return Ok(());
    }
    let due_ms = expiration.due_ms;
    turn.put::<Expirations>(&expiration, ());
    let mut cluster = turn.cluster()?;
    cluster.expirations_from_ms = cluster.expirations_from_ms.min(due_ms);
    turn.put::<Cluster>(&(), cluster);
    turn.effect(Effect::ArmRetention { due_ms });
    Ok(())
}

/// What has expired, the longest first: one more than a sweep looks at, at most.
fn due(turn: &mut Turn<'_, '_>) -> Result<Vec<Expiration>, StoreError> {
    let now_ms = turn.now_ms();
    let from_ms = turn.cluster()?.expirations_from_ms;
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

fn is_set_aside(turn: &mut Turn<'_, '_>, subject: Expiring) -> Result<bool, StoreError> {
    match subject {
        // Its parent is told of its end once it is taken up.
        Expiring::Run(number) => Ok(turn.is_quarantined(number) || run::is_awaited(turn, number)?),
        Expiring::ActionRun(number) => {
            let record = turn.get::<ActionRuns>(&number)?;
            Ok(record.is_some_and(|record| turn.is_task_quarantined(number, &record)))
        }
    }
}
