//! Maintains the indexes of runs (W4, W22, design rule 4).

use crate::effect::Effect;
use crate::ids::RunNumber;
use crate::limits::RETENTION_MS_DEFAULT;
use crate::retention;
use crate::tables::{
    AttributeKey, DefinitionRecord, Expiration, Expirations, Expiring, RunRecord, RunsByAttribute,
    RunsByCompletion, RunsByStatus, RunsByWorkflow, Table,
};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Updates the index rows of a run that the turn worked on. Only rows that differ are written, so a run that merely
/// continues costs none.
pub(super) fn update(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> TurnResult<()> {
    let before = run.before().map(|record| &**record);
    let after = &run.record;
    if is_indexed_alike(before, after) {
        return Ok(());
    }
    let old = match before {
        Some(before) if before.definition != after.definition => {
            Rows::of(run.number, before, &*turn.pinned(before.definition)?)
        }
        Some(before) => Rows::of(run.number, before, &run.definition),
        None => Rows::default(),
    };
    let new = Rows::of(run.number, after, &run.definition);
    replace_all(turn, &old, &new);
    if let Some(Expiration { due_ms, .. }) = new.expiration {
        turn.effect(Effect::ArmRetention { due_ms });
    }
    Ok(())
}

/// Deletes the index rows of a run; returns how many there were.
pub(crate) fn forget(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    run: &RunRecord,
) -> TurnResult<usize> {
    let definition = turn.pinned(run.definition)?;
    let old = Rows::of(number, run, &definition);
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
    if let Some(expiration) = expiration(number, run, definition) {
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
    let expiration = expiration(number, &child.record, &child.definition);
    if let Some(expiration) = expiration.filter(|expiration| expiration.due_ms <= turn.now_ms()) {
        retention::expire_again(turn, expiration)?;
    }
    turn.put_back_run(child);
    Ok(())
}

fn is_indexed_alike(before: Option<&RunRecord>, after: &RunRecord) -> bool {
    before.is_some_and(|before| {
        before.status == after.status
            && before.definition == after.definition
            && before.completed_at_ms == after.completed_at_ms
            && before.attributes == after.attributes
    })
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
    fn of(number: RunNumber, run: &RunRecord, definition: &DefinitionRecord) -> Self {
        let namespace = &run.namespace;
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
            expiration: expiration(number, run, definition),
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
    run: &RunRecord,
    definition: &DefinitionRecord,
) -> Option<Expiration> {
    let retention_ms = definition.definition.retention_ms;
    let retention_ms = retention_ms.unwrap_or(RETENTION_MS_DEFAULT);
    Some(Expiration {
        due_ms: run.completed_at_ms?.saturating_add(retention_ms),
        subject: Expiring::Run(number),
    })
}

fn attributes(
    number: RunNumber,
    run: &RunRecord,
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
