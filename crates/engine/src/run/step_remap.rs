//! Assigns the rows of an ended run to the steps of another definition (W89).
//!
//! The rows of a step are assigned to the [corresponding](Definition::mapping_to) step of the other definition. The rows of
//! other steps are deleted. If the run needs one of these steps to continue, the resume is rejected.

use super::resumable::{self, FormerStep};
use crate::definition::{Definition, StepIndex, StepMapping};
use crate::ids::{RunNumber, ScopeNumber};
use crate::limits::REMAPPED_ROWS_MAX;
use crate::resume_rejection::Drift;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, CompensationRecord, Compensations, Cursor, ResumableScopes,
    ResumableSteps, RunCursor, ScopeId, ScopePath, ScopeRecord, SignalsWaiting, StepResults,
    StepUsages, Table, TakenSignal, TakenSignals, Work,
};
use crate::turn::{LoadedRun, Row, Turn};
use std::collections::{BTreeMap, BTreeSet};

/// Why a run cannot continue with another definition.
pub(super) enum RemapError {
    /// The definition lacks steps or compensations that the run needs: one sentence for each.
    Drift(Vec<String>),
    /// The run has more than [`REMAPPED_ROWS_MAX`] rows about its steps.
    TooManyRows,
    Store(StoreError),
}

impl From<StoreError> for RemapError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Assigns the rows of an ended run to the steps of `wanted`, which is to become its definition. `from` is the step that the
/// run is to continue with, if the caller names one: `Some(None)` if the run does not have it. Returns what deletes the rows
/// that the run no longer needs.
pub(super) fn remap(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    (wanted, from): (&Definition, Option<Option<StepIndex>>),
) -> Result<Vec<Work>, RemapError> {
    let own = run.definition.clone();
    let mut rows = RowReader::new(run.number);
    let results = rows.read::<StepResults>(turn)?;
    let usages = rows.read::<StepUsages>(turn)?;
    let steps = rows.read::<ResumableSteps>(turn)?;
    let stopped = Stopped::new(steps, rows.read::<ResumableScopes>(turn)?);
    let compensations = rows.read::<Compensations>(turn)?;
    let waiting = rows.read::<SignalsWaiting>(turn)?;
    let taken = rows.read::<TakenSignals>(turn)?;
    let mut remap = Remap::new(&own.definition, wanted);
    let results = remap.results(results);
    let cursor = remap.run_cursor(run.record.resumption.cursor.clone(), from.is_some());
    if let Some(Some(step)) = from {
        remap.needed(step);
    }
    let step = match from {
        Some(step) => step,
        None => run
            .record
            .resumption
            .cursor
            .as_ref()
            .and_then(|cursor| cursor.at.entered_step()),
    };
    remap.keep_steps(&stopped, ScopeNumber::ROOT, step);
    remap.drop_others(&stopped);
    if remap.dropped_rows_count > REMAPPED_ROWS_MAX {
        return Err(RemapError::TooManyRows);
    }
    let compensations = remap.compensations(compensations);
    let missing = remap.differences();
    if !missing.is_empty() {
        return Err(RemapError::Drift(missing));
    }
    run.record.resumption.cursor = cursor;
    let record = &mut run.record;
    record.progress.last_left = remap.last_left(ScopeNumber::ROOT, record.progress.last_left);
    record.looping_step = record
        .looping_step
        .and_then(|step| remap.mapping.step(step));
    let waiting = remap.waiting_signals(run, waiting);
    let taken = remap.taken_signals(run, taken);
    write(turn, results);
    write(turn, remap.usages(usages));
    write(turn, compensations);
    write(turn, waiting);
    write(turn, taken);
    let mut queue = WorkQueue::default();
    for dropped in remap.dropped {
        resumable::forget_step(turn, &mut queue, run, dropped)?;
    }
    write(turn, remap.scopes);
    write(turn, remap.steps);
    Ok(queue.works.into_iter().map(|(_, work)| work).collect())
}

/// What a resume may need of the steps and scopes that did not succeed.
pub(super) struct Stopped {
    /// By the scope of the step.
    steps: BTreeMap<ScopeNumber, Vec<Row<ResumableSteps>>>,
    /// By the activation of the step that opened the scope.
    scopes: BTreeMap<u64, Vec<Row<ResumableScopes>>>,
}

impl Stopped {
    pub(super) fn new(steps: Vec<Row<ResumableSteps>>, scopes: Vec<Row<ResumableScopes>>) -> Self {
        let mut stopped = Self {
            steps: BTreeMap::new(),
            scopes: BTreeMap::new(),
        };
        for (key, step) in steps {
            stopped
                .steps
                .entry(step.scope)
                .or_default()
                .push((key, step));
        }
        for (key, scope) in scopes {
            stopped
                .scopes
                .entry(scope.opener)
                .or_default()
                .push((key, scope));
        }
        stopped
    }

    pub(super) fn steps_in(&self, scope: ScopeNumber) -> &[Row<ResumableSteps>] {
        self.steps.get(&scope).map_or(&[], Vec::as_slice)
    }

    pub(super) fn scopes_of(&self, opener: u64) -> &[Row<ResumableScopes>] {
        self.scopes.get(&opener).map_or(&[], Vec::as_slice)
    }
}

/// Reads the rows of a run, up to a limit.
struct RowReader {
    run: RunNumber,
    remaining: usize,
}

impl RowReader {
    fn new(run: RunNumber) -> Self {
        let remaining = REMAPPED_ROWS_MAX;
        Self { run, remaining }
    }

    fn read<T: Table>(&mut self, turn: &Turn<'_, '_>) -> Result<Vec<Row<T>>, RemapError> {
        let rows = turn.list::<T>(&self.run, self.remaining + 1)?;
        let remaining = self.remaining.checked_sub(rows.len());
        self.remaining = remaining.ok_or(RemapError::TooManyRows)?;
        Ok(rows)
    }
}

/// A row that is moved, changed or deleted.
struct Change<T: Table> {
    former_key: T::Key,
    new_row: Option<(T::Key, T::Record)>,
}

/// Deletes all former keys before it writes the new rows, because the new key of one row can be the former key of another.
fn write<T: Table>(turn: &mut Turn<'_, '_>, changes: Vec<Change<T>>) {
    for change in &changes {
        turn.delete::<T>(&change.former_key);
    }
    for (key, record) in changes.into_iter().filter_map(|change| change.new_row) {
        turn.put::<T>(&key, record);
    }
}

struct Remap<'d> {
    own: &'d Definition,
    wanted: &'d Definition,
    mapping: StepMapping,
    /// For each scope, the last remaining step with an output that it left, with the order of its result.
    last_left: BTreeMap<ScopeNumber, (u64, StepIndex)>,
    /// Steps that the run needs to continue, but that have no counterpart, or other branches there.
    missing_steps: BTreeSet<StepIndex>,
    /// Steps that the run may have to undo, but that it could not: each with the step that differs, or `None` if its
    /// counterpart has no compensation.
    missing_compensations: BTreeMap<StepIndex, Option<StepIndex>>,
    steps: Vec<Change<ResumableSteps>>,
    scopes: Vec<Change<ResumableScopes>>,
    /// Steps that did not succeed, that the run does not need, and that have no counterpart.
    dropped: Vec<FormerStep>,
    /// How many rows these steps and their branches have at most.
    dropped_rows_count: usize,
}

impl<'d> Remap<'d> {
    fn new(own: &'d Definition, wanted: &'d Definition) -> Self {
        Self {
            own,
            wanted,
            mapping: own.mapping_to(wanted),
            last_left: BTreeMap::new(),
            missing_steps: BTreeSet::new(),
            missing_compensations: BTreeMap::new(),
            steps: Vec::new(),
            scopes: Vec::new(),
            dropped: Vec::new(),
            dropped_rows_count: 0,
        }
    }

    /// What keeps the run from continuing, a sentence each.
    fn differences(&self) -> Vec<String> {
        let other = (self.wanted, &self.mapping);
        let steps = self.missing_steps.iter();
        let steps = steps.map(|step| self.own.describe_difference(*step, other));
        let compensations = self.missing_compensations.iter();
        let compensations = compensations.map(|(step, cause)| match cause {
            None => self.own.describe_missing_compensation(*step),
            Some(cause) => {
                let name = &self.own.step(*step).name;
                let cause = self.own.describe_difference(*cause, other);
                format!("step \"{name}\" cannot be undone because {cause}")
            }
        });
        steps.chain(compensations).take(Drift::LISTED_MAX).collect()
    }

    /// The step that corresponds to one that the run needs to continue.
    fn needed(&mut self, step: StepIndex) -> Option<StepIndex> {
        let found = self.mapping.step(step);
        if found.is_none() {
            self.missing_steps.insert(self.outermost_difference(step));
        }
        found
    }

    /// The step that explains why a step has no counterpart: the outermost enclosing step that is missing or has other
    /// branches, or the step itself.
    fn outermost_difference(&self, step: StepIndex) -> StepIndex {
        let around = self.own.blocks_around(self.own.step(step).block);
        let differs = around.filter(|(block, _)| self.mapping.block(*block).is_none());
        differs.last().map_or(step, |(_, opener)| opener)
    }

    /// Like [`Self::needed`], for a step that has opened blocks: their results and scopes are found by their positions.
    fn needed_opener(&mut self, step: StepIndex) -> Option<StepIndex> {
        let found = self.needed(step)?;
        if !self.mapping.has_blocks_of(self.own, step) {
            self.missing_steps.insert(step);
            return None;
        }
        Some(found)
    }

    /// The path of a scope that the run needs to continue.
    fn needed_path(&mut self, path: &ScopePath) -> Option<ScopePath> {
        let found = path.mapped(self.own, &self.mapping);
        if found.is_none() {
            let mut openers = path.0.iter();
            let outermost = openers.find(|down| down.mapped(self.own, &self.mapping).is_none());
            self.missing_steps.extend(outermost.map(|down| down.step));
        }
        found
    }

    /// The cursor of the run; `None` if the run was not stopped at a step, or does not need that step and lacks it.
    fn run_cursor(&mut self, cursor: Option<RunCursor>, is_replaced: bool) -> Option<RunCursor> {
        let mut cursor = cursor?;
        cursor.at = match is_replaced {
            true => cursor.at.mapped(&self.mapping)?,
            false => self.needed_cursor(&cursor.at)?,
        };
        Some(cursor)
    }

    fn needed_cursor(&mut self, cursor: &Cursor) -> Option<Cursor> {
        if let Some(step) = cursor.step() {
            self.needed(step);
        }
        cursor.clone().mapped(&self.mapping)
    }

    /// Assigns the steps of a scope that did not succeed, and what is below them. The scope continues the one at `step`; what
    /// it keeps of the others is left out if it has no counterpart.
    fn keep_steps(&mut self, stopped: &Stopped, scope: ScopeNumber, step: Option<StepIndex>) {
        for row in stopped.steps_in(scope) {
            let missing = self.missing_steps.clone();
            let (steps_count, scopes_count) = (self.steps.len(), self.scopes.len());
            self.keep_step(stopped, row);
            let is_needed = step == Some(row.1.step);
            if !is_needed && self.missing_steps.len() > missing.len() {
                self.missing_steps = missing;
                self.steps.truncate(steps_count);
                self.scopes.truncate(scopes_count);
            }
        }
    }

    fn keep_step(&mut self, stopped: &Stopped, (key, step): &Row<ResumableSteps>) {
        let new_row = self.stopped_step(step).map(|step| {
            let key = (key.0, step.scope, step.step);
            (key, step)
        });
        self.steps.push(Change {
            former_key: *key,
            new_row,
        });
        for (key, scope) in stopped.scopes_of(step.number) {
            let new_row = self.scope(scope).map(|scope| (*key, scope));
            self.scopes.push(Change {
                former_key: *key,
                new_row,
            });
            let step = scope.cursor.as_ref().and_then(Cursor::entered_step);
            self.keep_steps(stopped, scope.id.number, step);
        }
    }

    /// Drops what is kept of all other steps. Deferred work may be about to delete it.
    fn drop_others(&mut self, stopped: &Stopped) {
        let kept: BTreeSet<_> = self.steps.iter().map(|change| change.former_key).collect();
        let others = stopped.steps.values().flatten();
        for (_, step) in others.filter(|(key, _)| !kept.contains(key)) {
            self.dropped.push(FormerStep {
                scope: step.scope,
                step: step.step,
                keeps_results: true,
            });
            let branches = step.state.branches();
            self.dropped_rows_count +=
                1 + branches.map_or(0, |branches| branches.begun_count as usize);
        }
    }

    /// Results of steps that are missing are deleted.
    fn results(&mut self, rows: Vec<Row<StepResults>>) -> Vec<Change<StepResults>> {
        let changes = rows.into_iter().map(|(former_key, result)| {
            let (run, scope, own) = former_key;
            let new_row = self.mapping.step(own).map(|step| {
                let mut result = (*result).clone();
                result.first_scope = result
                    .first_scope
                    .filter(|_| self.mapping.has_blocks_of(self.own, own));
                if self.wanted.step(step).has_output() {
                    let last = self.last_left.entry(scope).or_insert((result.order, step));
                    *last = (*last).max((result.order, step));
                }
                ((run, scope, step), result)
            });
            Change {
                former_key,
                new_row,
            }
        });
        changes.collect()
    }

    fn usages(&self, rows: Vec<Row<StepUsages>>) -> Vec<Change<StepUsages>> {
        let changes = rows.into_iter().map(|(former_key, sums)| {
            let step = self.mapping.step(former_key.1);
            let new_row = step.map(|step| ((former_key.0, step), (*sums).clone()));
            Change {
                former_key,
                new_row,
            }
        });
        changes.collect()
    }

    /// The step that a scope left last.
    fn last_left(&self, scope: ScopeNumber, former: Option<StepIndex>) -> Option<StepIndex> {
        match former.and_then(|step| self.mapping.step(step)) {
            Some(step) => Some(step),
            None => self.last_left.get(&scope).map(|(_, step)| *step),
        }
    }

    /// A scope that did not succeed: the run needs it to continue.
    fn scope(&mut self, scope: &ScopeRecord) -> Option<ScopeRecord> {
        let path = self.needed_path(&scope.id.path)?;
        let mut progress = scope.progress;
        progress.last_left = self.last_left(scope.id.number, progress.last_left);
        let cursor = match &scope.cursor {
            Some(cursor) => Some(self.needed_cursor(cursor)?),
            None => None,
        };
        Some(ScopeRecord {
            id: ScopeId {
                number: scope.id.number,
                path,
            },
            block: self.mapping.block(scope.block)?,
            progress,
            cursor,
            ..scope.clone()
        })
    }

    /// A step that has opened blocks or called a child. The child is only resumed if the step still calls its workflow.
    fn stopped_step(&mut self, stopped: &Activation) -> Option<Activation> {
        let step = match stopped.state {
            ActivationState::Child(_) => {
                let step = self.mapping.step(stopped.step)?;
                let is_same = self.own.has_same_target(stopped.step, (self.wanted, step));
                Some(step).filter(|_| is_same)?
            }
            _ => self.needed_opener(stopped.step)?,
        };
        Some(Activation {
            step,
            ..stopped.clone()
        })
    }

    fn compensations(&mut self, rows: Vec<Row<Compensations>>) -> Vec<Change<Compensations>> {
        let changes = rows.into_iter().map(|(key, record)| {
            let new_row = self.compensation(&record).map(|record| (key, record));
            Change {
                former_key: key,
                new_row,
            }
        });
        changes.collect()
    }

    fn compensation(&mut self, record: &CompensationRecord) -> Option<CompensationRecord> {
        let path = record.scope.path.mapped(self.own, &self.mapping);
        let Some((path, step)) = path.zip(self.mapping.step(record.step)) else {
            let cause = self.outermost_difference(record.step);
            self.missing_compensations.insert(record.step, Some(cause));
            return None;
        };
        if self.wanted.step(step).call(record.call).is_none() {
            self.missing_compensations.insert(record.step, None);
        }
        Some(CompensationRecord {
            scope: ScopeId {
                path,
                ..record.scope
            },
            step,
            ..record.clone()
        })
    }

    /// Signals to a scope that is missing are dropped.
    fn waiting_signals(
        &self,
        run: &mut LoadedRun,
        rows: Vec<Row<SignalsWaiting>>,
    ) -> Vec<Change<SignalsWaiting>> {
        let changes = rows.into_iter().map(|(former_key, signal)| {
            let (number, to, signal_type, place) = &former_key;
            let to = to.mapped(self.own, &self.mapping);
            if to.is_none() {
                run.record.signals.remove(signal.bytes);
            }
            let key = to.map(|to| (*number, to, signal_type.clone(), *place));
            let new_row = key.map(|key| (key, (*signal).clone()));
            Change {
                former_key,
                new_row,
            }
        });
        changes.collect()
    }

    /// Signals that an attempt at a block has taken: a retry puts them back. A signal has a row for each attempt around the
    /// step that took it.
    fn taken_signals(
        &self,
        run: &mut LoadedRun,
        rows: Vec<Row<TakenSignals>>,
    ) -> Vec<Change<TakenSignals>> {
        let mut dropped = BTreeSet::new();
        let changes = rows.into_iter().map(|(former_key, taken)| {
            let to = taken.to.mapped(self.own, &self.mapping);
            if to.is_none() && dropped.insert(former_key.2) {
                run.record.signals.remove(taken.signal.bytes);
            }
            let new_row = to.map(|to| {
                let taken = TakenSignal {
                    to,
                    ..(*taken).clone()
                };
                (former_key, taken)
            });
            Change {
                former_key,
                new_row,
            }
        });
        changes.collect()
    }
}
