//! The state of a run: a JSON object that steps write and read (W58, W63, W66).
//!
//! Each scope below the run has a record of what it has written. It sees these writes over those of the scopes around
//! it, which stay as they are while it is open: the step that opened it is the only active one there. When the step
//! joins its branches, the writes of those that succeeded go to the scope of the step.

use super::failure::{self, is_failure};
use super::merge::MergedKeys;
use super::outcome::name;
use super::render::{self, BAD_STATE, DataContext, MERGE_FAILED, Mapped};
use crate::definition::{BuiltInTerminal, MergeRule};
use crate::ids::ScopeNumber;
use crate::json::{self, Json, quote};
use crate::limits::{JSON_DEPTH_MAX, STATE_BYTES_MAX, STATE_WRITES_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{Activation, Ending, EventKind, StateRecord, States, TargetResult, Work};
use crate::turn::{LoadedRun, Turn};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Why values were not written.
pub(super) struct NotWritten {
    code: &'static str,
    message: String,
}

impl NotWritten {
    fn bad_state(message: String) -> Self {
        Self {
            code: BAD_STATE,
            message,
        }
    }

    /// What a step ends with because of it.
    pub(super) fn ends_step(self, turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TargetResult {
        failure::failed(turn, run, self.code, self.message)
    }
}

/// Writes the state with which a run begins, before its first step is entered; the error says why it cannot.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
) -> Result<Result<(), String>, StoreError> {
    let record = run.definition.clone();
    let Some(template) = &record.definition.state else {
        return Ok(Ok(()));
    };
    let context = DataContext::of(ScopeNumber::ROOT);
    let object = match render::text(turn, run, context, template)? {
        Ok(object) => object,
        Err(refused) => {
            return Ok(Err(cut(&format!(
                "state: {}",
                refused.message(Mapped::State)
            ))));
        }
    };
    if !object.as_str().starts_with('{') {
        return Ok(Err("expected the state to be an object".to_owned()));
    }
    let object = overlay([object.as_str()].into_iter());
    if let Err(not_written) = check(&object) {
        return Ok(Err(not_written.message));
    }
    let object = Json::from_checked(object);
    turn.put::<States>(&(run.number, ScopeNumber::ROOT), StateRecord { object });
    Ok(Ok(()))
}

/// Checks that a state, or what a scope has written, is within its bounds.
fn check(object: &str) -> Result<(), NotWritten> {
    if object.len() > STATE_BYTES_MAX {
        return Err(NotWritten::bad_state(format!(
            "expected a state of at most {STATE_BYTES_MAX} bytes, but it would have {}",
            object.len()
        )));
    }
    let depth = json::depth(object);
    if depth > JSON_DEPTH_MAX {
        return Err(NotWritten::bad_state(format!(
            "expected a state that nests at most {JSON_DEPTH_MAX} levels deep, but it would have {depth}"
        )));
    }
    Ok(())
}

/// The end of a run that cannot begin.
pub(super) fn refuse_begin(reason: String) -> Work {
    let ending = Ending::of_engine(BuiltInTerminal::Failed, Some(reason), BAD_STATE);
    Work::Finish(ending)
}

/// The state as a scope sees it, as an object.
pub(super) fn text(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
) -> Result<Json, StoreError> {
    let mut layers = Vec::new();
    let mut number = scope;
    loop {
        layers.extend(turn.get::<States>(&(run.number, number))?);
        match run.scope(turn, number)? {
            Some(below) => number = below.parent,
            None => break,
        }
    }
    if let [only] = &layers[..] {
        return Ok(only.object.clone());
    }
    let fields = fields(layers.iter().rev().map(|layer| layer.object.as_str()));
    spend(turn, fields.len());
    Ok(Json::from_checked(object(&fields)))
}

/// Adds what keys cost to the turn: each about as much as an operation of an expression.
fn spend(turn: &mut Turn<'_, '_>, keys_count: usize) {
    turn.spend_units(u32::try_from(keys_count).unwrap_or(u32::MAX));
}

/// An object with the fields of all objects.
fn overlay<'o>(objects: impl Iterator<Item = &'o str>) -> String {
    object(&fields(objects))
}

/// A key and its value.
type Field<'o> = (Cow<'o, str>, &'o str);

/// The fields of all objects, in the order in which their keys first occur; of equal keys the last one counts.
fn fields<'o>(objects: impl Iterator<Item = &'o str>) -> Vec<Field<'o>> {
    let mut fields: Vec<Field<'o>> = Vec::new();
    let mut positions: BTreeMap<Cow<'o, str>, usize> = BTreeMap::new();
    for (key, value) in objects.flat_map(json::fields) {
        let name = json::key_name(key);
        match positions.get(&name) {
            Some(position) => fields[*position].1 = value,
            None => {
                positions.insert(name.clone(), fields.len());
                fields.push((name, value));
            }
        }
    }
    fields
}

fn object(fields: &[Field<'_>]) -> String {
    let mut text = String::from("{");
    for (position, (name, value)) in fields.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        quote(name, &mut text);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// Whether a step that ends so writes to the state, and has an output of its target.
pub(super) fn writes(target_result: &TargetResult) -> bool {
    let outcome = &target_result.outcome;
    !is_failure(outcome) && outcome.as_str() != name::CANCELLED
}

/// Writes what a step sets when it has ended; the error says why it cannot.
pub(super) fn set(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<(), NotWritten>, StoreError> {
    let record = run.definition.clone();
    let step = record.definition.step(active.step);
    let Some(set) = step.set.as_ref().filter(|_| writes(target_result)) else {
        return Ok(Ok(()));
    };
    let context = DataContext::of(active.scope).with_result(target_result.output);
    let object = match render::text(turn, run, context, &set.object)? {
        Ok(object) => object,
        Err(refused) => {
            let message = cut(&format!("set: {}", refused.message(Mapped::State)));
            let code = refused.code(Mapped::State);
            return Ok(Err(NotWritten { code, message }));
        }
    };
    if let Err(not_written) = write(turn, run, active.scope, object.as_str())? {
        return Ok(Err(not_written));
    }
    if run.is_silent(&run.scope_id(active.scope), active.visit) {
        return Ok(Ok(()));
    }
    let writes = run.store_payload(turn, object);
    let keys = set.keys.clone();
    run.note(active, EventKind::StateChanged { keys, writes });
    Ok(Ok(()))
}

/// Adds the fields of an object to what a scope has written.
fn write(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    object: &str,
) -> Result<Result<(), NotWritten>, StoreError> {
    let key = (run.number, scope);
    let before = turn.get::<States>(&key)?;
    let before = before.as_ref().map_or("", |before| before.object.as_str());
    let after = fields([before, object].into_iter());
    spend(turn, after.len());
    let after = self::object(&after);
    if let Err(not_written) = check(&after) {
        return Ok(Err(not_written));
    }
    if scope != ScopeNumber::ROOT {
        let others = run.record.state_writes_bytes - before.len() as u64;
        let all = others + after.len() as u64;
        if all > STATE_WRITES_BYTES_MAX {
            return Ok(Err(NotWritten::bad_state(format!(
                "expected the open branches of the run to write at most {STATE_WRITES_BYTES_MAX} bytes to the state, \
                 but it would be {all}"
            ))));
        }
        run.record.state_writes_bytes = all;
    }
    let object = Json::from_checked(after);
    turn.put::<States>(&key, StateRecord { object });
    Ok(Ok(()))
}

/// Drops what a scope below the run has written.
pub(super) fn forget(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
) -> Result<(), StoreError> {
    let key = (run.number, scope);
    if let Some(written) = turn.get::<States>(&key)? {
        turn.delete::<States>(&key);
        run.record.state_writes_bytes -= written.object.as_str().len() as u64;
    }
    Ok(())
}

/// Drops a bounded part of what the scopes below a run that has ended have written; the rest is queued.
pub(super) fn forget_writes(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> Result<(), StoreError> {
    let rows = turn.list::<States>(&run.number, SWEEP_ROWS_MAX)?;
    let is_whole = rows.len() < SWEEP_ROWS_MAX;
    for ((_, scope), _) in rows {
        if scope != ScopeNumber::ROOT {
            forget(turn, run, scope)?;
        }
    }
    if !is_whole {
        queue.push(run.number, Work::ForgetWrites);
    }
    Ok(())
}

/// The branches whose writes a step keeps.
pub(super) struct Writers<'r> {
    /// The scope of the step.
    pub(super) into: ScopeNumber,
    /// The scopes of the branches, in document order.
    pub(super) branches: Vec<ScopeNumber>,
    /// What becomes of keys that they have written.
    pub(super) merge: &'r [MergeRule],
}

/// Moves the writes of branches that succeeded to the scope of the step that joins them: all of them or none, which leaves
/// them to a resume.
pub(super) fn join(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    writers: &Writers<'_>,
) -> Result<Result<(), NotWritten>, StoreError> {
    let mut written = Vec::new();
    let mut written_bytes = 0;
    for branch in &writers.branches {
        if let Some(own) = turn.get::<States>(&(run.number, *branch))? {
            written_bytes += own.object.as_str().len() as u64;
            written.push((*branch, own));
        }
    }
    if written.is_empty() {
        return Ok(Ok(()));
    }
    let before = match writers.merge.is_empty() {
        true => None,
        false => Some(text(turn, run, writers.into)?),
    };
    let before = before.as_ref().map_or("", Json::as_str);
    let mut merged_keys = MergedKeys::new(writers.merge, before);
    for (_, written) in &written {
        merged_keys.add(written.object.as_str());
    }
    turn.spend_units(merged_keys.fields_count());
    let mut together = fields(written.iter().map(|(_, written)| written.object.as_str()));
    spend(turn, together.len());
    let mut merged = Vec::new();
    for (position, (key, _)) in together.iter().enumerate() {
        match merged_keys.merged(key) {
            None => {}
            Some(Ok(value)) => merged.push((position, value)),
            Some(Err(message)) => {
                let code = MERGE_FAILED;
                return Ok(Err(NotWritten { code, message }));
            }
        }
    }
    for (position, value) in &merged {
        together[*position].1 = value;
    }
    // They are moved, not copied.
    run.record.state_writes_bytes -= written_bytes;
    if let Err(not_written) = write(turn, run, writers.into, &object(&together))? {
        run.record.state_writes_bytes += written_bytes;
        return Ok(Err(not_written));
    }
    for (branch, _) in &written {
        turn.delete::<States>(&(run.number, *branch));
    }
    Ok(Ok(()))
}
