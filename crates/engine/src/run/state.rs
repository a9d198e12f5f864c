//! The state of a run: a JSON object that steps write and read (W58, W63, W66).
//!
//! Each scope below the run has a record of what it has written. It sees these writes over those of the scopes around
//! it, which stay as they are while it is open: the step that opened it is the only active one there. When the step
//! joins its branches, the writes of those that succeeded go to the scope of the step.

use super::failure::{self, is_failure};
use super::merge::MergedKeys;
use super::outcome::name;
use super::render::{self, BAD_STATE, DataContext, MERGE_FAILED, Mapped};
use super::state_fields::{Change, StateFields};
use crate::definition::{BuiltInTerminal, MergeRule};
use crate::ids::{ScopeNumber, StateKey};
use crate::json::{self, Json};
use crate::limits::{JSON_DEPTH_MAX, STATE_BYTES_MAX, STATE_WRITES_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{Activation, Ending, EventKind, StateRecord, States, TargetResult, Work};
use crate::turn::{LoadedRun, Turn};

/// Why values were not written.
pub(super) struct NotWritten {
    pub(super) code: &'static str,
    pub(super) message: String,
    /// Whether another attempt may write something else.
    is_retryable: bool,
}

impl NotWritten {
    pub(super) fn bad_state(message: String) -> Self {
        Self {
            code: BAD_STATE,
            message,
            is_retryable: true,
        }
    }

    /// What an attempt with this result ends with because of it. It may be followed by another one.
    pub(super) fn ends_attempt(
        self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        former: &TargetResult,
    ) -> TargetResult {
        TargetResult {
            is_retryable: self.is_retryable && former.is_retryable,
            not_before_ms: former.not_before_ms,
            ..self.ends_step(turn, run)
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
    let mut fields = StateFields::default();
    fields.add_object(object.as_str());
    let state = fields.written();
    if let Err(not_written) = check(state.object.as_str()) {
        return Ok(Err(not_written.message));
    }
    turn.put::<States>(&(run.number, ScopeNumber::ROOT), state);
    note_full(turn, run)?;
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
    if let [only] = &layers[..]
        && only.removed.is_empty()
    {
        return Ok(only.object.clone());
    }
    let mut fields = StateFields::default();
    for layer in layers.iter().rev() {
        fields.add_written(layer);
    }
    spend(turn, fields.len());
    Ok(Json::from_checked(fields.object()))
}

/// Adds what keys cost to the turn: each about as much as an operation of an expression.
pub(super) fn spend(turn: &mut Turn<'_, '_>, keys_count: usize) {
    turn.spend_units(u32::try_from(keys_count).unwrap_or(u32::MAX));
}

/// Whether a step that ends so writes to the state, and has an output of its target.
pub(super) fn writes(target_result: &TargetResult) -> bool {
    let outcome = &target_result.outcome;
    !is_failure(outcome) && outcome.as_str() != name::CANCELLED
}

/// Writes what a step sets; the error says why it cannot. Returns the object.
pub(super) fn set(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<Option<Json>, NotWritten>, StoreError> {
    let record = run.definition.clone();
    let step = record.definition.step(active.step);
    let Some(set) = step.set.as_ref().filter(|_| writes(target_result)) else {
        return Ok(Ok(None));
    };
    let context = DataContext::of(active.scope).with_result(target_result.output);
    let object = match render::text(turn, run, context, &set.object)? {
        Ok(object) => object,
        Err(refused) => {
            return Ok(Err(NotWritten {
                code: refused.code(Mapped::State),
                message: cut(&format!("set: {}", refused.message(Mapped::State))),
                is_retryable: false,
            }));
        }
    };
    let mut fields = StateFields::default();
    fields.add_object(object.as_str());
    Ok(match prepared(turn, run, active.scope, &fields)? {
        Ok(record) => {
            write(turn, run, active.scope, record)?;
            Ok(Some(object))
        }
        Err(not_written) => Err(not_written),
    })
}

/// Adds the event of what a step has set.
pub(super) fn note_set(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    object: Option<Json>,
) {
    let Some(object) = object else {
        return;
    };
    let is_silent = run.is_silent(&run.scope_id(active.scope), active.visit);
    let definition = run.definition.clone();
    let set = definition.definition.step(active.step).set.as_ref();
    if let Some(set) = set.filter(|_| !is_silent) {
        let kind = EventKind::StateChanged {
            keys: set.keys.clone(),
            writes: run.store_payload(turn, object),
            is_patch: false,
        };
        run.note(active, kind);
    }
}

/// Adds the event of what a step of the run itself has [joined](join). Below the run, each write has its own event.
pub(super) fn note_joined(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    joined: Option<StateRecord>,
) {
    let Some(joined) = joined.filter(|_| active.scope == ScopeNumber::ROOT) else {
        return;
    };
    let kind = EventKind::StateJoined {
        keys: shown_keys(joined.object.as_str()),
        writes: run.store_payload(turn, joined.object),
        removed: joined.removed,
    };
    run.note(active, kind);
}

/// The maximum number of keys that an event about writes names.
const KEYS_SHOWN_MAX: usize = 64;

/// The first keys of an object, as an event names them.
pub(super) fn shown_keys(object: &str) -> Vec<StateKey> {
    let keys = json::fields(object).map(|(key, _)| json::key_name(key));
    let keys = keys.filter_map(|key| StateKey::new(key).ok());
    keys.take(KEYS_SHOWN_MAX).collect()
}

/// Adds the event of the whole state of the run.
pub(super) fn note_full(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    let state = text(turn, run, ScopeNumber::ROOT)?;
    let state = run.store_payload(turn, state);
    run.record.scopes.has_unrecorded_writes = false;
    run.note_run(EventKind::StateRecorded { state });
    Ok(())
}

/// What a scope will have written with further fields.
pub(super) fn prepared(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    scope: ScopeNumber,
    fields: &StateFields<'_>,
) -> Result<Result<StateRecord, NotWritten>, StoreError> {
    let before = turn.get::<States>(&(run.number, scope))?;
    let mut after = StateFields::default();
    if let Some(before) = &before {
        after.add_written(before);
    }
    for (name, change) in fields.iter() {
        after.add(name.into(), change.clone());
    }
    spend(turn, after.len());
    let after = match scope {
        ScopeNumber::ROOT => StateRecord::of(Json::from_checked(after.object())),
        _ => after.written(),
    };
    if let Err(not_written) = check(after.object.as_str()) {
        return Ok(Err(not_written));
    }
    if scope != ScopeNumber::ROOT {
        let others = run.record.scopes.state_writes_bytes - written_bytes(before.as_deref());
        let all = others + written_bytes(Some(&after));
        if all > STATE_WRITES_BYTES_MAX {
            let message = format!(
                "expected the open branches of the run to write at most {STATE_WRITES_BYTES_MAX} bytes to the state, \
                 but it would be {all}"
            );
            return Ok(Err(NotWritten {
                is_retryable: false,
                ..NotWritten::bad_state(message)
            }));
        }
    }
    Ok(Ok(after))
}

fn written_bytes(written: Option<&StateRecord>) -> u64 {
    written.map_or(0, |written| written.object.as_str().len() as u64)
}

/// Writes what was [prepared].
pub(super) fn write(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    record: StateRecord,
) -> Result<(), StoreError> {
    let key = (run.number, scope);
    if scope != ScopeNumber::ROOT {
        let before = turn.get::<States>(&key)?;
        run.record.scopes.state_writes_bytes -= written_bytes(before.as_deref());
        run.record.scopes.state_writes_bytes += written_bytes(Some(&record));
    }
    turn.put::<States>(&key, record);
    Ok(())
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
        run.record.scopes.state_writes_bytes -= written.object.as_str().len() as u64;
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
/// them to a resume. Returns what that scope has got.
pub(super) fn join(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    writers: &Writers<'_>,
) -> Result<Result<Option<StateRecord>, NotWritten>, StoreError> {
    let mut written = Vec::new();
    let mut written_bytes = 0;
    for branch in &writers.branches {
        if let Some(own) = turn.get::<States>(&(run.number, *branch))? {
            written_bytes += own.object.as_str().len() as u64;
            written.push((*branch, own));
        }
    }
    if written.is_empty() {
        return Ok(Ok(None));
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
    let mut together = StateFields::default();
    for (_, written) in &written {
        together.add_written(written);
    }
    spend(turn, together.len());
    let mut merged = Vec::new();
    for (key, change) in together.iter() {
        if *change == Change::Removed && !merged_keys.has_values(key) {
            continue;
        }
        match merged_keys.merged(key) {
            None => {}
            Some(Ok(value)) => merged.push((key.to_owned(), value)),
            Some(Err(message)) => {
                return Ok(Err(NotWritten {
                    code: MERGE_FAILED,
                    message,
                    is_retryable: false,
                }));
            }
        }
    }
    for (key, value) in merged {
        together.add(key.into(), Change::Value(value.into()));
    }
    // They are mapped, not copied.
    run.record.scopes.state_writes_bytes -= written_bytes;
    match prepared(turn, run, writers.into, &together)? {
        Ok(record) => write(turn, run, writers.into, record)?,
        Err(not_written) => {
            run.record.scopes.state_writes_bytes += written_bytes;
            return Ok(Err(not_written));
        }
    }
    for (branch, _) in &written {
        turn.delete::<States>(&(run.number, *branch));
    }
    Ok(Ok(Some(together.written())))
}
