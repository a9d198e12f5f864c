//! Resuming a run with another revision of its workflow (W89).

use super::attributes;
use super::outcome::is_good;
use super::resume::top_level_step;
use super::step_remap::{RemapError, remap};
use crate::definition::{CallRole, Definition, StepIndex};
use crate::ids::{RunId, RunNumber, ScopeNumber, StepName};
use crate::limits::RUN_REVISIONS_MAX;
use crate::rejection::Rejection;
use crate::resume_rejection::{Drift, ResumeRejection};
use crate::run::cursor;
use crate::store::StoreError;
use crate::tables::{DefinitionRecord, FormerDefinition, RunRevisionChange, StepResults, Work};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};
use crate::workflow::VersionChoice;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The revision with which a run is to continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeRevision {
    /// The revision.
    pub version: VersionChoice,
    /// Whether its steps may differ, as long as it has those that the run needs to continue.
    pub is_forced: bool,
}

/// A run that was pinned to another revision.
pub(super) struct Revised {
    /// How its revision has changed.
    pub(super) change: Box<RunRevisionChange>,
    /// Deletes what the run no longer needs.
    pub(super) cleanup: Vec<Work>,
}

/// Pins an ended run to another revision, which must have the same steps unless it is forced. `from` is the step with which
/// the run is to continue, if the caller names one. `None` if the run has the revision already.
pub(super) fn revise(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    revision: &ResumeRevision,
    from: Option<&StepName>,
) -> TurnResult<Option<Revised>> {
    let former = run.definition.clone();
    let namespace = run.record.namespace.clone();
    let version = &revision.version;
    let resolved = version.resolve(turn, &namespace, &former.definition.name)?;
    if resolved.number == run.record.definition {
        return Ok(None);
    }
    if run.record.former_definitions.len() >= RUN_REVISIONS_MAX {
        return Err(
            Rejection::from(ResumeRejection::TooManyRevisions(run.record.id.clone())).into(),
        );
    }
    let (own, wanted) = (&former.definition, &resolved.record);
    // With the same steps, nothing is forced.
    let is_forced = revision.is_forced && !own.has_same_layout_as(&wanted.definition);
    let stopped = StoppedRun {
        number: run.number,
        id: run.record.id.clone(),
        definition: own,
        next: cursor::step_of(run),
        is_forced,
    };
    let mut cleanup = Vec::new();
    if is_forced {
        let from = from.map(|name| top_level_step(own, name).ok());
        cleanup = stopped.remap(turn, run, (wanted, from))?;
    } else {
        stopped.check_layout(turn, wanted)?;
        let lost = lost_compensations(run, own, &wanted.definition);
        if !lost.is_empty() {
            return Err(stopped.drift(turn, wanted, lost)?);
        }
    }
    let change = RunRevisionChange {
        previous_version: own.version.clone(),
        previous_revision: former.revision,
        revision: resolved.record.revision,
    };
    let left = FormerDefinition {
        definition: run.record.definition,
        last_event: run.record.history.events_count,
    };
    run.record.former_definitions.push(left);
    run.record.definition = resolved.number;
    run.definition = resolved.record;
    // They are stored by their position in the definition.
    attributes::compute(turn, run, ScopeNumber::ROOT)?;
    Ok(Some(Revised {
        change: Box::new(change),
        cleanup,
    }))
}

/// The steps that could no longer be undone, although the run may have to undo them.
fn lost_compensations(run: &LoadedRun, own: &Definition, wanted: &Definition) -> Vec<String> {
    if run.record.compensations.open_count == 0 {
        return Vec::new();
    }
    let roles = [CallRole::Compensation, CallRole::FallbackCompensation];
    let steps = own.steps.iter().zip(&wanted.steps);
    let steps = (0..).map(StepIndex).zip(steps);
    let lost = steps.filter(|(_, (own, wanted))| {
        let mut roles = roles.iter();
        roles.any(|role| own.call(*role).is_some() && wanted.call(*role).is_none())
    });
    let lost = lost.take(Drift::LISTED_MAX);
    lost.map(|(step, _)| own.describe_missing_compensation(step))
        .collect()
}

/// A run that another definition is to continue.
pub(super) struct StoppedRun<'d> {
    pub(super) number: RunNumber,
    pub(super) id: RunId,
    /// The definition with which it has stopped.
    pub(super) definition: &'d Definition,
    /// The step with which it would continue.
    pub(super) next: Option<StepIndex>,
    /// Whether the other definition may have other steps.
    pub(super) is_forced: bool,
}

impl StoppedRun<'_> {
    /// Checks that another definition has the same steps.
    pub(super) fn check_layout(
        &self,
        turn: &mut Turn<'_, '_>,
        wanted: &DefinitionRecord,
    ) -> TurnResult<()> {
        let (own, other) = (self.definition, &wanted.definition);
        turn.spend_comparison(own, other);
        if own.has_same_layout_as(other) {
            return Ok(());
        }
        let differences = own.layout_differences(other, Drift::LISTED_MAX);
        Err(self.drift(turn, wanted, differences)?)
    }

    /// Assigns what is stored about the steps of the run to those of another definition.
    fn remap(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        (wanted, from): (&DefinitionRecord, Option<Option<StepIndex>>),
    ) -> TurnResult<Vec<Work>> {
        turn.spend_comparison(self.definition, &wanted.definition);
        match remap(turn, run, (&wanted.definition, from)) {
            Ok(cleanup) => Ok(cleanup),
            Err(RemapError::Drift(missing)) => Err(self.drift(turn, wanted, missing)?),
            Err(RemapError::TooManyRows) => {
                Err(Rejection::from(ResumeRejection::TooManyRows(self.id.clone())).into())
            }
            Err(RemapError::Store(error)) => Err(Abort::Store(error)),
        }
    }

    /// Rejects a definition that cannot continue the run.
    pub(super) fn drift(
        &self,
        turn: &mut Turn<'_, '_>,
        wanted: &DefinitionRecord,
        differences: Vec<String>,
    ) -> Result<Abort, StoreError> {
        let definition = self.definition;
        let mut completed: Vec<StepName> = Vec::new();
        turn.visit::<StepResults>(&(self.number, ScopeNumber::ROOT), |(_, _, step), result| {
            if is_good(&result.outcome) && !definition.is_handler(step) {
                completed.push(definition.step(step).name.clone());
            }
            match completed.len() < Drift::LISTED_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        let drift = Drift {
            run_id: self.id.clone(),
            saved_signature: definition.signature(),
            version: wanted.definition.version.clone(),
            revision: wanted.revision,
            signature: wanted.definition.signature(),
            differences,
            completed,
            pending: self.next.map(|step| definition.step(step).name.clone()),
            is_forced: self.is_forced,
        };
        Ok(Rejection::from(ResumeRejection::Drift(Box::new(drift))).into())
    }
}
