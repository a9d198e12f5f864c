//! Deleting request ids whose window has passed.

use super::age::forget_past;
use crate::limits::{REQUEST_WINDOW_MS, SWEEP_ROWS_MAX};
use crate::reply::Done;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Deletes request ids whose window has passed, in bounded batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRequests {}

impl SweepRequests {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        forget_past(turn, REQUEST_WINDOW_MS, SWEEP_ROWS_MAX, |_| false)?;
        Ok(Done {})
    }
}
