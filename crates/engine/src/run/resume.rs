//! Resuming a run that has failed, timed out or was cancelled (W89).

use super::advance::advance_all;
use super::child::Above;
use super::reopen::{check, reopen};
use super::revise::{ResumeRevision, revise};
use super::{create, cursor};
use crate::definition::{Definition, StepIndex};
use crate::ids::{Namespace, RunId, StepName};
use crate::json::Json;
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::RunResumed;
use crate::resume_rejection::ResumeRejection;
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
    pub revision: Option<ResumeRevision>,
    /// The new metadata of the run, an object; with `None`, the run keeps its metadata (W91).
    pub metadata: Option<Json>,
}

impl ResumeRun {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RunResumed> {
        quota::check(turn, namespace, &[(QuotaDimension::OpenRuns, 1)])?;
        let mut run = create::find_attempt(turn, namespace, &self.run_id)?;
        check_parent(turn, &run)?;
        check(turn, &run)?;
        let revised = match &self.revision {
            Some(revision) => revise(turn, &mut run, revision, self.from.as_ref())?,
            None => None,
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
        let is_revised = revised.is_some();
        let (change, mut works) = match revised {
            Some(revised) => (Some(revised.change), revised.cleanup),
            None => (None, Vec::new()),
        };
        if let Some(metadata) = &self.metadata {
            run.record.metadata = Some(run.store_payload(turn, metadata.clone()));
        }
        let work = reopen(turn, &mut run, &Above::default(), change)?;
        let is_queued = run.record.is_held_up();
        let (version, revision) = (
            run.definition.definition.version.clone(),
            run.definition.revision,
        );
        turn.put_back_run(run);
        works.extend(work);
        advance_all(turn, number, works)?;
        Ok(RunResumed {
            step,
            is_queued,
            version,
            revision,
            is_revised,
        })
    }

    /// Makes the run continue with a step that the caller names.
    fn place(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        name: &StepName,
    ) -> TurnResult<()> {
        let found = match top_level_step(&run.definition.definition, name) {
            Ok(step) if cursor::place_at(turn, run, step)? => return Ok(()),
            Ok(_) => format!("it has not visited \"{name}\""),
            Err(found) => found,
        };
        let run_id = run.record.id.clone();
        Err(Rejection::from(ResumeRejection::StepNotVisited { run_id, found }).into())
    }
}

/// The step of the workflow's own block with this name; otherwise, what is wrong with the name.
pub(super) fn top_level_step(
    definition: &Definition,
    name: &StepName,
) -> Result<StepIndex, String> {
    let found = definition.step_named(name);
    let index = found.ok_or_else(|| format!("there is no step \"{name}\""))?;
    let outermost = definition.outermost(index);
    if definition.is_handler(outermost) {
        return Err(format!("\"{name}\" belongs to a handler"));
    }
    if outermost != index {
        let around = &definition.step(outermost).name;
        return Err(format!("\"{name}\" belongs to step \"{around}\""));
    }
    Ok(index)
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
    let cursor = run.record.resumption.cursor.as_ref();
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
