//! Retrying an ended run: starts a new run at the first step or at a step that the ended run has visited (W90).

use super::create::find_record;
use super::history_replay::{Replayed, ReplayedRun, replay};
use super::mapped_results::map_results;
use super::reopen::check_ended;
use super::resume::top_level_step;
use super::revise::{NextStep, StoppedRun};
use super::start::StartRun;
use super::taken_over::TakenOver;
use crate::definition::{Definition, StepIndex};
use crate::ids::{Namespace, RunId, RunNumber, ScopeNumber, StepName};
use crate::rejection::Rejection;
use crate::reply::RunStarted;
use crate::resume_rejection::ResumeRejection;
use crate::tables::{CompensationProgress, RunRecord, StepResults, TriggeredBy};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Starts a new run to replace an ended run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryRun {
    /// The id of the run that has ended.
    pub run_id: RunId,
    /// Its number: once it is deleted, another run can have its id.
    pub run: RunNumber,
    /// Where the new run begins; `None` for the first step.
    pub from: Option<RetryFrom>,
    /// The new run. It begins with the input of the ended run, patched before proposal.
    pub start: StartRun,
}

/// The step with which the new run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryFrom {
    /// A step of the run itself, which the ended run has visited.
    pub step: StepName,
    /// Whether the revision may have other steps. The results of those that it does not have are dropped.
    pub is_forced: bool,
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
        self.start.check_quota(turn, namespace)?;
        let (number, record) = find_record(turn, namespace, &self.run_id)?;
        if number != self.run {
            return Err(Rejection::RunNotFound(self.run_id.clone()).into());
        }
        check_ended(turn, number, &record)?;
        let taken_over = match &self.from {
            Some(from) => Some(self.take_over(turn, namespace, &record, from)?),
            None => None,
        };
        let triggered_by = TriggeredBy::Retry {
            of: self.run_id.clone(),
            from: self.from.as_ref().map(|from| from.step.clone()),
        };
        self.start.create(turn, namespace, triggered_by, taken_over)
    }

    /// What the new run takes over: the results and the state that the ended run had when it first entered the step.
    fn take_over(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        record: &RunRecord,
        from: &RetryFrom,
    ) -> TurnResult<TakenOver> {
        check_not_undone(record)?;
        let own = turn.pinned(record.definition)?;
        let step = top_level_step(&own.definition, &from.step);
        let step = step.map_err(|found| self.not_visited(found))?;
        let stopped = StoppedRun {
            number: self.run,
            id: self.run_id.clone(),
            definition: &own.definition,
            next: Some(NextStep {
                step,
                continues: false,
            }),
            is_forced: from.is_forced,
        };
        let start = &self.start;
        let wanted = start.version.resolve(turn, namespace, &start.workflow)?;
        // What follows costs more than the checks of the start.
        start.check(turn, namespace, &wanted)?;
        let wanted = &wanted.record;
        if !from.is_forced {
            stopped.check_layout(turn, wanted)?;
        }
        let first_step = match top_level_step(&wanted.definition, &from.step) {
            Ok(step) => step,
            Err(found) => return Err(stopped.drift(turn, wanted, vec![found])?),
        };
        let mut replay = self.replay(turn, record, (&own.definition, step))?;
        let results = std::mem::take(&mut replay.results);
        let mapped = map_results(results, &own.definition, &wanted.definition);
        match TakenOver::read(turn, first_step, &replay, mapped)? {
            Some(taken_over) => Ok(taken_over),
            None => Err(Rejection::from(ResumeRejection::ResultsTooLarge {
                run_id: self.run_id.clone(),
                step: from.step.clone(),
            })
            .into()),
        }
    }

    fn replay(
        &self,
        turn: &mut Turn<'_, '_>,
        record: &RunRecord,
        (definition, step): (&Definition, StepIndex),
    ) -> TurnResult<ReplayedRun> {
        let name = &definition.step(step).name;
        match replay(turn, (self.run, record), step)? {
            Replayed::Found(replay) => Ok(replay),
            Replayed::NotVisited => {
                let key = (self.run, ScopeNumber::ROOT, step);
                let found = match turn.get::<StepResults>(&key)? {
                    Some(_) => format!("it has only taken over the result of \"{name}\""),
                    None => format!("it has not visited \"{name}\""),
                };
                Err(self.not_visited(found).into())
            }
            Replayed::Trimmed => Err(Rejection::from(ResumeRejection::HistoryTrimmed {
                run_id: self.run_id.clone(),
                step: name.clone(),
            })
            .into()),
        }
    }

    fn not_visited(&self, found: String) -> Rejection {
        let run_id = self.run_id.clone();
        Rejection::from(ResumeRejection::StepNotVisited { run_id, found })
    }
}

/// Checks that no step of the run was undone: the new run would take over the result of something that has no effect.
fn check_not_undone(record: &RunRecord) -> Result<(), Rejection> {
    let counts = &record.compensations;
    let is_undone = counts.entered_count > u64::from(counts.open_count);
    match is_undone || counts.progress != CompensationProgress::None {
        true => Err(ResumeRejection::Compensated(record.id.clone()).into()),
        false => Ok(()),
    }
}
