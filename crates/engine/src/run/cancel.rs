//! Cancelling a run (W18).

use super::advance::advance;
use super::create::{check_open, find};
use crate::ids::{Namespace, RunId};
use crate::message::cut;
use crate::rejection::Rejection;
use crate::reply::RunCancelled;
use crate::tables::Work;
use crate::turn::{Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Cancels a run and its children; late results are rejected. If its end is decided already, it can only be forced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRun {
    /// The run.
    pub run_id: RunId,
    /// The reason, for people.
    pub reason: Option<String>,
    /// Whether the run ends immediately, without its handlers.
    pub is_forced: bool,
}

impl CancelRun {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RunCancelled> {
        let run = find(turn, namespace, &self.run_id)?;
        check_open(&run)?;
        // The attempt after a run whose end is decided can be prevented (W77).
        let fixed_end = run.record.fixed_end.as_ref();
        let is_final = fixed_end.filter(|end| !self.is_forced && !end.is_retried);
        if let Some(end) = is_final {
            let ending = Undeliverable::RunEnding {
                run_id: self.run_id.clone(),
                phase: end.phase.name().to_owned(),
            };
            return Err(Rejection::from(ending).into());
        }
        let reason = self.reason.as_deref().map(cut);
        let number = run.number;
        turn.put_back_run(run);
        let work = match self.is_forced {
            true => Work::Force { reason },
            false => Work::Cancel { reason },
        };
        advance(turn, number, work)?;
        let record = turn.run_record(number)?;
        let end = record.as_ref().and_then(|run| run.fixed_end.as_ref());
        Ok(RunCancelled {
            phase: end.map(|end| end.phase),
            has_ended: record.as_ref().is_none_or(|run| !run.status.is_open()),
        })
    }
}
