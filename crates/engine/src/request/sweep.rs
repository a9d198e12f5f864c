//! Deleting request ids whose window has passed.

use super::age::{forget_oldest, oldest_past};
use crate::ids::Namespace;
use crate::limits::{REQUEST_WINDOW_MS, SWEEP_ROWS_MAX};
use crate::reply::Done;
use crate::tables::Cluster;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Deletes request ids whose window has passed, in bounded batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRequests {}

impl SweepRequests {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> TurnResult<Done> {
        let mut cluster = turn.cluster()?;
        for _ in 0..SWEEP_ROWS_MAX {
            let Some(oldest) = oldest_past(turn, &cluster, REQUEST_WINDOW_MS)? else {
                break;
            };
            forget_oldest(turn, &mut cluster, &oldest)?;
        }
        turn.put::<Cluster>(&(), cluster);
        Ok(Done {})
    }
}
