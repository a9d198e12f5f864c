//! The compiled locks of a run: an obligation fulfilled outside `apply` (W85).

use super::advance::advance;
use super::exclusion::{self, LOCKS};
use super::{child, cursor};
use crate::definition::{BuiltInTerminal, Lock};
use crate::ids::{Namespace, RunNumber, ScopeNumber};
use crate::message::cut;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::start_rejection::StartRejection;
use crate::tables::{Ending, EventKind, Exclusions, SchemaChecks, Work};
use crate::turn::{LoadedRun, Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Delivers the compiled locks of a run that waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideLocks {
    /// The run.
    pub run: RunNumber,
    /// What compiling its locks gave.
    pub verdict: LocksVerdict,
}

/// What compiling the locks of a run gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocksVerdict {
    /// They were compiled, in the order of the patterns.
    Compiled(Vec<Lock>),
    /// One of them is not a regular expression of the dialect.
    Invalid {
        /// Why it is not.
        detail: String,
    },
}

impl DecideLocks {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> TurnResult<Done> {
        let check = (self.run, LOCKS);
        if turn.get::<SchemaChecks>(&check)?.is_none() {
            return Err(Rejection::ActivationStale.into());
        }
        let mut run = turn.load_run(self.run)?;
        if turn.is_quarantined(self.run) {
            return Err(Rejection::RunQuarantined(run.record.id.clone()).into());
        }
        let refusal = self.take(turn, &mut run)?;
        turn.delete::<SchemaChecks>(&check);
        let work = match refusal {
            Some(refusal) => Some(refused(refusal)),
            None => begun(&mut run),
        };
        let began = child::began(&run);
        turn.put_back_run(run);
        let Some(work) = work else {
            return Ok(Done {});
        };
        if let Some((parent, began)) = began {
            advance(turn, parent, began)?;
        }
        advance(turn, self.run, work)?;
        Ok(Done {})
    }

    /// Gives the run its locks, or says why it cannot have them.
    fn take(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
    ) -> TurnResult<Option<StartRejection>> {
        let locks = match &self.verdict {
            LocksVerdict::Compiled(locks) => locks,
            LocksVerdict::Invalid { detail } => {
                return Ok(Some(StartRejection::LocksInvalid(cut(detail))));
            }
        };
        let own = turn.get::<Exclusions>(&self.run)?;
        let own = own.ok_or(Rejection::ActivationStale)?;
        let patterns = locks.iter().map(|lock| &lock.pattern);
        if !patterns.eq(&own.patterns) {
            return Err(Rejection::ActivationStale.into());
        }
        let refusal = exclusion::too_many(turn, &run.record.namespace, locks)?;
        if refusal.is_none() {
            exclusion::hold_locks(turn, run, locks.clone())?;
        }
        Ok(refusal)
    }
}

/// The end of a run that cannot have its locks.
fn refused(refusal: StartRejection) -> Work {
    let (detail, code) = (refusal.to_string(), refusal.code().as_str());
    Work::Finish(Ending::of_engine(
        BuiltInTerminal::Failed,
        Some(cut(&detail)),
        code,
    ))
}

/// The first work of a run that has its locks; `None` if it still waits for its time or its keys.
fn begun(run: &mut LoadedRun) -> Option<Work> {
    let record = &run.record;
    if record.timers.starts_at_ms.is_some() || record.awaited_keys().is_some() {
        return None;
    }
    run.end_wait(ScopeNumber::ROOT);
    run.note_run(EventKind::RunBegan);
    Some(cursor::first_work(run))
}
