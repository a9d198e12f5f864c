//! Retrying a run that has ended: a new run that begins as the ended run did (W90).

use super::create::find_record;
use super::reopen::check_ended;
use super::start::StartRun;
use crate::ids::{Namespace, RunId, RunNumber};
use crate::rejection::Rejection;
use crate::reply::RunStarted;
use crate::tables::TriggeredBy;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Starts a new run to replace an ended run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryRun {
    /// The id of the run that has ended.
    pub run_id: RunId,
    /// Its number: once it is deleted, another run can have its id.
    pub run: RunNumber,
    /// The new run. It begins with the input of the ended run, patched before proposal.
    pub start: StartRun,
}

impl RetryRun {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RunStarted> {
        if let Some(existing) = self.start.answer_existing(turn, namespace)? {
            return Ok(existing);
        }
        let (number, record) = find_record(turn, namespace, &self.run_id)?;
        if number != self.run {
            return Err(Rejection::RunNotFound(self.run_id.clone()).into());
        }
        check_ended(turn, number, &record)?;
        let triggered_by = TriggeredBy::Retry {
            of: self.run_id.clone(),
        };
        self.start.create(turn, namespace, triggered_by)
    }
}
