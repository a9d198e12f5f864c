//! Resuming a run with another revision of its workflow (W89).

use super::attributes;
use super::outcome::is_good;
use crate::definition::{CallRole, Definition};
use crate::ids::{ScopeNumber, StepName};
use crate::limits::RUN_REVISIONS_MAX;
use crate::rejection::Rejection;
use crate::resume_rejection::{Drift, ResumeRejection};
use crate::run::VersionChoice;
use crate::run::cursor;
use crate::store::StoreError;
use crate::tables::{DefinitionRecord, FormerDefinition, RunRevisionChange, StepResults};
use crate::turn::{LoadedRun, Turn, TurnResult};
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
    let (own, wanted) = (&former.definition, &resolved.record.definition);
    let steps_count = own.steps.len() + wanted.steps.len();
    turn.spend_units(u32::try_from(steps_count).unwrap_or(u32::MAX));
    let differences = match own.has_same_layout_as(wanted) {
        true => lost_compensations(run, own, wanted),
        false => own.layout_differences(wanted, Drift::LISTED_MAX),
    };
    if !differences.is_empty() {
        let drift = drift(turn, run, (&resolved.record, differences))?;
        return Err(Rejection::from(ResumeRejection::Drift(Box::new(drift))).into());
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

/// Describes why the run does not continue with another definition.
fn drift(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    (wanted, differences): (&DefinitionRecord, Vec<String>),
) -> Result<Drift, StoreError> {
    let definition = &run.definition.definition;
    let mut completed: Vec<StepName> = Vec::new();
    turn.visit::<StepResults>(&(run.number, ScopeNumber::ROOT), |(_, _, step), result| {
        if is_good(&result.outcome) && !definition.is_handler(step) {
            completed.push(definition.step(step).name.clone());
        }
        match completed.len() < Drift::LISTED_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    let pending = cursor::step_of(run).map(|step| definition.step(step).name.clone());
    Ok(Drift {
        run_id: run.record.id.clone(),
        saved_signature: definition.signature(),
        version: wanted.definition.version.clone(),
        revision: wanted.revision,
        signature: wanted.definition.signature(),
        differences,
        completed,
        pending,
    })
}
