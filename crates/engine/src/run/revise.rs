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
use crate::tables::{
    Cursor, DefinitionRecord, FormerDefinition, ResumableScopes, RunRevisionChange, StepResults,
    Work,
};
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
        next: from.map_or_else(
            || cursor::step_of(run),
            |name| top_level_step(own, name).ok(),
        ),
        continues_scopes: from.is_none(),
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
    /// The top-level step with which it would continue.
    pub(super) next: Option<StepIndex>,
    /// Whether the scopes below this step would continue at their cursors.
    pub(super) continues_scopes: bool,
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
        let completed = self.completed_steps(turn)?;
        let pending = self.pending_steps(turn)?;
        let drift = Drift {
            run_id: self.id.clone(),
            saved_signature: definition.signature(),
            version: wanted.definition.version.clone(),
            revision: wanted.revision,
            signature: wanted.definition.signature(),
            differences,
            completed,
            pending,
            is_forced: self.is_forced,
        };
        Ok(Rejection::from(ResumeRejection::Drift(Box::new(drift))).into())
    }
    /// The steps with a good result, the first [`Drift::LISTED_MAX`].
    fn completed_steps(&self, turn: &mut Turn<'_, '_>) -> Result<Vec<StepName>, StoreError> {
        let mut names = StepNames::new(self.definition);
        turn.visit::<StepResults>(&self.number, |(_, _, step), result| {
            match is_good(&result.outcome) && !self.definition.is_handler(step) {
                true => names.add(step),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(names.listed)
    }

    /// The steps with which the run and its scopes would continue, the first [`Drift::LISTED_MAX`].
    fn pending_steps(&self, turn: &mut Turn<'_, '_>) -> Result<Vec<StepName>, StoreError> {
        let mut names = StepNames::new(self.definition);
        let _ = self.next.map(|step| names.add(step));
        if self.continues_scopes {
            turn.visit::<ResumableScopes>(&self.number, |_, scope| {
                let cursor = scope.cursor.as_ref();
                match cursor.and_then(Cursor::next_step) {
                    Some(step) => names.add(step),
                    None => ControlFlow::Continue(()),
                }
            })?;
        }
        Ok(names.listed)
    }
}

/// The names of the first few different steps among many.
struct StepNames<'d> {
    definition: &'d Definition,
    listed: Vec<StepName>,
    /// How many more steps are looked at.
    looks_left: usize,
}

impl<'d> StepNames<'d> {
    /// The maximum number of steps to look at: iterations stop at the same steps.
    const LOOKS_MAX: usize = 1_000;

    fn new(definition: &'d Definition) -> Self {
        Self {
            definition,
            listed: Vec::new(),
            looks_left: Self::LOOKS_MAX,
        }
    }

    fn add(&mut self, step: StepIndex) -> ControlFlow<()> {
        let name = &self.definition.step(step).name;
        if !self.listed.contains(name) {
            self.listed.push(name.clone());
        }
        self.looks_left -= 1;
        match self.listed.len() < Drift::LISTED_MAX && self.looks_left > 0 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
