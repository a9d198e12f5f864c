//! Resuming a run with another revision of its workflow (W89).

use super::attributes;
use super::outcome::is_good;
use crate::definition::{CallRole, Definition, StepIndex};
use crate::ids::{RunId, RunNumber, ScopeNumber, StepName};
use crate::limits::RUN_REVISIONS_MAX;
use crate::rejection::Rejection;
use crate::resume_rejection::{Drift, ResumeRejection};
use crate::run::VersionChoice;
use crate::run::cursor;
use crate::store::StoreError;
use crate::tables::{DefinitionRecord, FormerDefinition, RunRevisionChange, StepResults};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};
use std::ops::ControlFlow;

/// Pins an ended run to another revision, which must have the same steps. Returns the change, if it differs from the
/// former one.
pub(super) fn revise(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    version: &VersionChoice,
) -> TurnResult<Option<Box<RunRevisionChange>>> {
    let former = run.definition.clone();
    let namespace = run.record.namespace.clone();
    let resolved = version.resolve(turn, &namespace, &former.definition.name)?;
    if resolved.number == run.record.definition {
        return Ok(None);
    }
    let own = &former.definition;
    let stopped = StoppedRun {
        number: run.number,
        id: run.record.id.clone(),
        definition: own,
        next: cursor::step_of(run),
    };
    stopped.check_layout(turn, &resolved.record)?;
    let lost = lost_compensations(run, own, &resolved.record.definition);
    if !lost.is_empty() {
        return Err(stopped.drift(turn, &resolved.record, lost)?);
    }
    if run.record.former_definitions.len() >= RUN_REVISIONS_MAX {
        return Err(
            Rejection::from(ResumeRejection::TooManyRevisions(run.record.id.clone())).into(),
        );
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
    Ok(Some(Box::new(change)))
}

/// The steps that could no longer be undone, although the run may have to undo them.
fn lost_compensations(run: &LoadedRun, own: &Definition, wanted: &Definition) -> Vec<String> {
    if run.record.compensations.open_count == 0 {
        return Vec::new();
    }
    let roles = [CallRole::Compensation, CallRole::FallbackCompensation];
    let steps = own.steps.iter().zip(&wanted.steps);
    let lost = steps.filter(|(own, wanted)| {
        let mut roles = roles.iter();
        roles.any(|role| own.call(*role).is_some() && wanted.call(*role).is_none())
    });
    let lost = lost.take(Drift::LISTED_MAX);
    lost.map(|(own, _)| format!("step \"{}\" has lost one", own.name))
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
}

impl StoppedRun<'_> {
    /// Checks that another definition has the same steps.
    pub(super) fn check_layout(
        &self,
        turn: &mut Turn<'_, '_>,
        wanted: &DefinitionRecord,
    ) -> TurnResult<()> {
        let (own, other) = (self.definition, &wanted.definition);
        let steps_count = own.steps.len() + other.steps.len();
        turn.spend_units(u32::try_from(steps_count).unwrap_or(u32::MAX));
        if own.has_same_layout_as(other) {
            return Ok(());
        }
        let differences = own.layout_differences(other, Drift::LISTED_MAX);
        Err(self.drift(turn, wanted, differences)?)
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
        };
        Ok(Rejection::from(ResumeRejection::Drift(Box::new(drift))).into())
    }
}
