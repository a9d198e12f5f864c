//! Resuming a run that has failed, timed out or was cancelled (W89).

use super::advance::advance;
use super::child::Above;
use super::reopen::{check, reopen};
use super::revise::revise;
use super::start::VersionChoice;
use super::{create, cursor};
use crate::definition::{BlockIndex, StepIndex};
use crate::ids::{Namespace, RunId, StepName};
use crate::rejection::Rejection;
use crate::reply::RunResumed;
use crate::resume_rejection::ResumeRejection;
use crate::scope_path;
use crate::turn::{LoadedRun, Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Reopens a run that has failed, timed out or was cancelled: it continues where it has stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeRun {
    /// The run.
    pub run_id: RunId,
    /// The step of the run itself to continue with; `None` for the steps at which it has stopped.
    pub from: Option<StepName>,
    /// The revision to continue with; `None` for the one with which it has stopped.
    pub version: Option<VersionChoice>,
}

impl ResumeRun {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RunResumed> {
        let mut run = create::find_attempt(turn, namespace, &self.run_id)?;
        check_parent(turn, &run)?;
        check(turn, &run)?;
        let is_revised = match &self.version {
            Some(version) => revise(turn, &mut run, version)?,
            None => false,
        };
        match &self.from {
            Some(step) => self.place(turn, &mut run, step)?,
            None => check_cursor(&run)?,
        }
        if let Some(link) = &mut run.record.parent {
            link.is_detached = true;
        }
        let number = run.number;
        let step = cursor::step_of(&run);
        let step = step.map(|step| run.definition.definition.step(step).name.clone());
        let revision = is_revised.then_some(run.definition.revision);
        let work = reopen(turn, &mut run, &Above::default(), revision)?;
        let is_queued = run.record.is_held_up();
        turn.put_back_run(run);
        if let Some(work) = work {
            advance(turn, number, work)?;
        }
        Ok(RunResumed { step, is_queued })
    }

    /// Makes the run continue with a step that the caller names.
    fn place(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        name: &StepName,
    ) -> TurnResult<()> {
        let is_placed = match step_named(run, name) {
            Some(step) => cursor::place_at(turn, run, step)?,
            None => false,
        };
        match is_placed {
            true => Ok(()),
            false => Err(Rejection::from(ResumeRejection::StepNotVisited {
                run_id: run.record.id.clone(),
                step: name.clone(),
            })
            .into()),
        }
    }
}

/// The step of the run's own block with this name.
fn step_named(run: &LoadedRun, name: &StepName) -> Option<StepIndex> {
    let definition = &run.definition.definition;
    let step = scope_path::step_in(definition, BlockIndex::ROOT, name.as_str())?;
    (!definition.is_handler(step)).then_some(step)
}

/// Checks that no open run waits for this one: it would have to be resumed itself.
fn check_parent(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> TurnResult<()> {
    let Some(link) = run.record.parent else {
        return Ok(());
    };
    match turn.run_record(link.run)? {
        Some(parent) if parent.status.is_open() => {
            Err(Rejection::from(ResumeRejection::ParentOpen {
                run_id: run.record.id.clone(),
                parent: parent.id.clone(),
            })
            .into())
        }
        _ => Ok(()),
    }
}

/// Checks that it is known where the run continues.
fn check_cursor(run: &LoadedRun) -> TurnResult<()> {
    let cursor = run.record.cursor.as_ref();
    if cursor.is_none_or(|cursor| !cursor.is_after_success) {
        return Ok(());
    }
    let step = cursor::step_of(run);
    let step = step.map(|step| &run.definition.definition.step(step).name);
    Err(Rejection::from(ResumeRejection::StepNeeded {
        run_id: run.record.id.clone(),
        last: step.map_or_else(|| "a step".to_owned(), |step| format!("step \"{step}\"")),
    })
    .into())
}
