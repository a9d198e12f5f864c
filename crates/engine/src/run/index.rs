//! Maintains the indexes of runs (W4, W22, design rule 4).

use crate::effect::Effect;
use crate::ids::{Namespace, RunNumber};
use crate::limits::RETENTION_MS_DEFAULT;
use crate::quota::QuotaDimension;
use crate::retention;
use crate::tables::{
    AttributeKey, AttributeValue, DefinitionRecord, Expiration, Expirations, Expiring, RunRecord,
    RunStatus, RunsByAttribute, RunsByCompletion, RunsByStatus, RunsByWorkflow, Table,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use std::collections::BTreeMap;

/// Updates the index rows of a run that the turn worked on. Only rows that differ are written, so a run that merely
/// continues costs none.
pub(super) fn update(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> TurnResult<()> {
    let (number, after) = (run.number, &run.record);
    count_open(turn, run);
    let old = match run.before() {
        Some(before) if before.is_indexed_like(after) => return Ok(()),
        Some(before) => {
            let definition = match before.definition == after.definition {
                true => run.definition.clone(),
                false => turn.pinned(before.definition)?,
            };
            let indexed = IndexedRun {
                namespace: &after.namespace,
                status: before.status,
                completed_at_ms: before.completed_at_ms,
                attributes: &before.attributes,
            };
            Rows::of(number, &indexed, &definition)
        }
        None => Rows::default(),
    };
    let new = Rows::of(number, &IndexedRun::of(after), &run.definition);
    replace_all(turn, &old, &new);
    if let Some(Expiration { due_ms, .. }) = new.expiration {
        turn.effect(Effect::ArmRetention { due_ms });
    }
    Ok(())
}

/// Counts a run that has begun or continues, and one that has ended no longer (X38).
fn count_open(turn: &mut Turn<'_, '_>, run: &LoadedRun) {
    let was_open = run.before().is_some_and(|before| before.status.is_open());
    let by = i64::from(run.record.status.is_open()) - i64::from(was_open);
    turn.note_use(&run.record.namespace, QuotaDimension::OpenRuns, by);
}

/// Deletes the index rows of a run; returns how many there were.
pub(crate) fn forget(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    run: &RunRecord,
) -> TurnResult<usize> {
    let definition = turn.pinned(run.definition)?;
    let old = Rows::of(number, &IndexedRun::of(run), &definition);
    replace_all(turn, &old, &Rows::default());
    Ok(old.count())
}

/// Restarts the retention of an ended run that a sweep skipped during its quarantine (design rule 10).
pub(super) fn expire_again(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    run: &RunRecord,
    definition: &DefinitionRecord,
) -> TurnResult<()> {
    if let Some(expiration) = expiration(number, run.completed_at_ms, definition) {
        retention::expire_again(turn, expiration)?;
    }
    Ok(())
}

/// Restarts the retention of a child that has ended, if a sweep skipped it because its parent did not have its result
/// yet.
pub(super) fn expire_child(turn: &mut Turn<'_, '_>, number: RunNumber) -> TurnResult<()> {
    let Some(child) = turn.load_run_if_kept(number)? else {
        return Ok(());
    };
    let expiration = expiration(number, child.record.completed_at_ms, &child.definition);
    if let Some(expiration) = expiration.filter(|expiration| expiration.due_ms <= turn.now_ms()) {
        retention::expire_again(turn, expiration)?;
    }
    turn.put_back_run(child);
    Ok(())
}

/// What the index rows of a run are made from, beside its number and its definition.
struct IndexedRun<'r> {
    namespace: &'r Namespace,
    status: RunStatus,
    completed_at_ms: Option<u64>,
    attributes: &'r BTreeMap<u16, AttributeValue>,
}

impl<'r> IndexedRun<'r> {
    fn of(run: &'r RunRecord) -> Self {
        Self {
            namespace: &run.namespace,
            status: run.status,
            completed_at_ms: run.completed_at_ms,
            attributes: &run.attributes,
        }
    }
}

/// A run's rows in the indexes.
#[derive(Default)]
struct Rows {
    workflow: Option<<RunsByWorkflow as Table>::Key>,
    status: Option<<RunsByStatus as Table>::Key>,
    completion: Option<<RunsByCompletion as Table>::Key>,
    attributes: Vec<<RunsByAttribute as Table>::Key>,
    expiration: Option<Expiration>,
}

impl Rows {
    fn of(number: RunNumber, run: &IndexedRun<'_>, definition: &DefinitionRecord) -> Self {
        let namespace = run.namespace;
        let completion = run.completed_at_ms;
        Self {
            workflow: Some((
                namespace.clone(),
                definition.definition.name.clone(),
                number,
            )),
            status: Some((namespace.clone(), run.status, number)),
            completion: completion.map(|at_ms| (namespace.clone(), at_ms, number)),
            attributes: attributes(number, run, definition),
            expiration: expiration(number, completion, definition),
        }
    }

    fn count(&self) -> usize {
        self.workflow.iter().len()
            + self.status.iter().len()
            + self.completion.iter().len()
            + self.attributes.len()
            + self.expiration.iter().len()
    }
}

/// When an ended run's retention ends (W4).
fn expiration(
    number: RunNumber,
    completed_at_ms: Option<u64>,
    definition: &DefinitionRecord,
) -> Option<Expiration> {
    let retention_ms = definition.definition.retention_ms;
    let retention_ms = retention_ms.unwrap_or(RETENTION_MS_DEFAULT);
    Some(Expiration {
        due_ms: completed_at_ms?.saturating_add(retention_ms),
        subject: Expiring::Run(number),
    })
}

fn attributes(
    number: RunNumber,
    run: &IndexedRun<'_>,
    definition: &DefinitionRecord,
) -> Vec<<RunsByAttribute as Table>::Key> {
    let defined = &definition.definition.search_attributes;
    let present = run.attributes.iter();
    present
        .map(|(position, value)| {
            let name = defined[usize::from(*position)].name.clone();
            (
                run.namespace.clone(),
                name,
                AttributeKey::new(value),
                number,
            )
        })
        .collect()
}

fn replace_all(turn: &mut Turn<'_, '_>, old: &Rows, new: &Rows) {
    replace::<RunsByWorkflow>(turn, old.workflow.as_slice(), new.workflow.as_slice());
    replace::<RunsByStatus>(turn, old.status.as_slice(), new.status.as_slice());
    replace::<RunsByCompletion>(turn, old.completion.as_slice(), new.completion.as_slice());
    replace::<RunsByAttribute>(turn, &old.attributes, &new.attributes);
    replace::<Expirations>(turn, old.expiration.as_slice(), new.expiration.as_slice());
}

fn replace<T: Table<Record = (), Key: PartialEq>>(
    turn: &mut Turn<'_, '_>,
    old: &[T::Key],
    new: &[T::Key],
) {
    for key in old.iter().filter(|key| !new.contains(key)) {
        turn.delete::<T>(key);
    }
    for key in new.iter().filter(|key| !old.contains(key)) {
        turn.put::<T>(key, ());
    }
}
