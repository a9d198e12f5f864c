//! Resuming a run with another revision of its workflow (W89).

use super::attributes;
use super::failure::is_failure;
use super::resume::top_level_step;
use super::step_remap::{RemapError, Stopped, remap};
use crate::definition::{CallRole, Definition, StepIndex};
use crate::ids::{RunId, RunNumber, ScopeNumber, StepName};
use crate::limits::RUN_REVISIONS_MAX;
use crate::rejection::Rejection;
use crate::resume_rejection::{Drift, ResumeRejection};
use crate::run::cursor;
use crate::store::StoreError;
use crate::tables::{
    Cursor, DefinitionRecord, FormerDefinition, ResumableScopes, ResumableSteps, RunRevisionChange,
    StepResults, Work,
};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};
use crate::workflow::VersionChoice;
use serde::{Deserialize, Serialize};

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
    if run.record.resumption.former_definitions.len() >= RUN_REVISIONS_MAX {
        return Err(
            Rejection::from(ResumeRejection::TooManyRevisions(run.record.id.clone())).into(),
        );
    }
    let (own, wanted) = (&former.definition, &resolved.record);
    // With the same steps, nothing is forced.
    let is_forced = revision.is_forced && !own.has_same_layout_as(&wanted.definition);
    let from = from.map(|name| top_level_step(own, name).ok());
    let stopped = StoppedRun {
        number: run.number,
        id: run.record.id.clone(),
        definition: own,
        next: NextStep::of(run, from),
        is_forced,
    };
    let mut cleanup = Vec::new();
    if is_forced {
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
    run.record.resumption.former_definitions.push(left);
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
    pub(super) next: Option<NextStep>,
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
        let pending = self.pending_steps(turn)?;
        let drift = Drift {
            run_id: self.id.clone(),
            saved_signature: self.definition.signature(),
            version: wanted.definition.version.clone(),
            revision: wanted.revision,
            signature: wanted.definition.signature(),
            differences,
            completed: self.completed_steps(turn, &pending)?,
            pending,
            is_forced: self.is_forced,
        };
        Ok(Rejection::from(ResumeRejection::Drift(Box::new(drift))).into())
    }

    /// The first [`Drift::LISTED_MAX`] steps that ended without failing and would not be executed again. Steps of
    /// handlers are not listed.
    fn completed_steps(
        &self,
        turn: &Turn<'_, '_>,
        pending: &[StepName],
    ) -> Result<Vec<StepName>, StoreError> {
        let results = turn.list::<StepResults>(&self.number, DRIFT_ROWS_MAX)?;
        let mut names = StepNames::new(self.definition);
        for ((_, _, step), result) in results {
            let outermost = self.definition.outermost(step);
            let is_pending = pending.contains(&self.definition.step(step).name);
            if !(is_failure(&result.outcome) || is_pending || self.definition.is_handler(outermost))
            {
                names.add(step);
            }
        }
        Ok(names.listed)
    }

    /// The steps with which the run and its scopes would continue, the first [`Drift::LISTED_MAX`].
    fn pending_steps(&self, turn: &Turn<'_, '_>) -> Result<Vec<StepName>, StoreError> {
        let mut names = StepNames::new(self.definition);
        let Some(next) = self.next else {
            return Ok(names.listed);
        };
        names.add(next.step);
        if next.continues {
            let steps = turn.list::<ResumableSteps>(&self.number, DRIFT_ROWS_MAX)?;
            let scopes = turn.list::<ResumableScopes>(&self.number, DRIFT_ROWS_MAX)?;
            names.add_below(&Stopped::new(steps, scopes), ScopeNumber::ROOT, next.step);
        }
        Ok(names.listed)
    }
}

/// How many rows of a table are read to describe a drift.
const DRIFT_ROWS_MAX: usize = 1_000;

/// The top-level step with which an ended run would continue.
#[derive(Clone, Copy)]
pub(super) struct NextStep {
    pub(super) step: StepIndex,
    /// Whether the scopes below it would continue at their cursors.
    pub(super) continues: bool,
}

impl NextStep {
    /// The step of a run that is resumed, perhaps from a step that the caller names.
    fn of(run: &LoadedRun, from: Option<Option<StepIndex>>) -> Option<Self> {
        let stopped_at = cursor::step_of(run);
        let step = from.unwrap_or(stopped_at)?;
        let cursor = run.record.resumption.cursor.as_ref();
        let entered = cursor.and_then(|cursor| cursor.at.entered_step());
        // If the run has stopped elsewhere, the step that the caller names continues where it was left.
        let continues = entered == Some(step) || stopped_at != Some(step);
        Some(Self { step, continues })
    }
}

/// The names of the first few different steps among many.
struct StepNames<'d> {
    definition: &'d Definition,
    listed: Vec<StepName>,
}

impl<'d> StepNames<'d> {
    fn new(definition: &'d Definition) -> Self {
        Self {
            definition,
            listed: Vec::new(),
        }
    }

    fn add(&mut self, step: StepIndex) {
        let name = &self.definition.step(step).name;
        if self.listed.len() < Drift::LISTED_MAX && !self.listed.contains(name) {
            self.listed.push(name.clone());
        }
    }

    /// Adds the steps at the cursors of the scopes below a stopped step. A scope without a cursor begins again.
    fn add_below(&mut self, stopped: &Stopped, scope: ScopeNumber, step: StepIndex) {
        let steps = stopped.steps_in(scope).iter();
        for (_, opener) in steps.filter(|(_, stopped)| stopped.step == step) {
            for (_, below) in stopped.scopes_of(opener.number) {
                let cursor = below.cursor.as_ref();
                match cursor {
                    Some(cursor) => cursor
                        .next_step()
                        .into_iter()
                        .for_each(|step| self.add(step)),
                    None => self.add(self.definition.block(below.block).start),
                }
                if let Some(entered) = cursor.and_then(Cursor::entered_step) {
                    self.add_below(stopped, below.id.number, entered);
                }
            }
        }
    }
}
