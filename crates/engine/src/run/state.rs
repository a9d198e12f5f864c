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
use super::step_input;
use crate::definition::{BuiltInTerminal, MergeRule};
use crate::ids::{ScopeNumber, StateKey};
use crate::json::{self, Json};
use crate::limits::{JSON_DEPTH_MAX, STATE_BYTES_MAX, STATE_WRITES_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, Ending, EventKind, PayloadRef, StateRecord, States, TargetResult, TaskError, Work,
};
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};

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

    /// What an attempt ends with because of it, which may be followed by another one.
    pub(super) fn ends_attempt(self, turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TargetResult {
        TargetResult {
            is_retryable: true,
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
fn spend(turn: &mut Turn<'_, '_>, keys_count: usize) {
    turn.spend_units(u32::try_from(keys_count).unwrap_or(u32::MAX));
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
    let mut written = StateFields::default();
    written.add_object(object.as_str());
    if let Err(not_written) = write(turn, run, active.scope, &written)? {
        return Ok(Err(not_written));
    }
    if run.is_silent(&run.scope_id(active.scope), active.visit) {
        return Ok(Ok(()));
    }
    let writes = run.store_payload(turn, object);
    let keys = set.keys.clone();
    let is_patch = false;
    run.note(
        active,
        EventKind::StateChanged {
            keys,
            writes,
            is_patch,
        },
    );
    Ok(Ok(()))
}

/// Writes the patch that a worker has returned with the result of an attempt (RFC 7396); the error says why it cannot. The
/// patch of an attempt that has failed counts only if the step keeps it.
pub(super) fn patch(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<(), NotWritten>, StoreError> {
    match target_result.state_patch.as_deref().copied() {
        Some(patch) if is_patched(run, active, target_result) => {
            write_stored(turn, run, active, patch)
        }
        _ => Ok(Ok(())),
    }
}

/// Whether an attempt with this result patches the state.
pub(super) fn is_patched(
    run: &LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> bool {
    let is_kept = writes(target_result) || keeps_state(run, active);
    target_result.state_patch.is_some() && is_kept
}

/// Writes the patch that a worker has returned for an attempt of the action after which another one follows, if the step
/// keeps it. Returns the input of the next attempt, if it changes; the error says why the patch cannot be written.
pub(crate) fn keep_state(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    patch: &Json,
) -> TurnResult<Result<Option<PayloadRef>, TaskError>> {
    if turn.is_quarantined(at.run) {
        return Ok(Ok(None));
    }
    let mut run = turn.load_run(at.run)?;
    let kept = match run.take(turn, at.activation)? {
        Some(mut active) => {
            let kept = keep_patch(turn, &mut run, &mut active, patch)?;
            run.put_back(active);
            kept
        }
        None => Ok(None),
    };
    turn.put_back_run(run);
    Ok(kept)
}

fn keep_patch(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Draft<Activation>,
    patch: &Json,
) -> Result<Result<Option<PayloadRef>, TaskError>, StoreError> {
    if !keeps_state(run, active) {
        return Ok(Ok(None));
    }
    let patch = run.store_payload(turn, patch.clone());
    if let Err(NotWritten { code, message }) = write_stored(turn, run, active, patch)? {
        let code = code.to_owned();
        return Ok(Err(TaskError { code, message }));
    }
    let mapped = step_input::map_again(turn, run, active)?;
    Ok(mapped
        .map(|()| Some(active.input))
        .map_err(|refused| refused.error()))
}

/// Writes a patch that is stored with the run, and notes it.
fn write_stored(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    patch: PayloadRef,
) -> Result<Result<(), NotWritten>, StoreError> {
    let text = turn.payload(patch)?;
    if let Err(not_written) = write_patch(turn, run, active.scope, text.as_str())? {
        return Ok(Err(not_written));
    }
    if run.is_silent(&run.scope_id(active.scope), active.visit) {
        return Ok(Ok(()));
    }
    let event = run.next_event();
    run.hold_payload(turn, patch, event)?;
    let keys = json::fields(text.as_str().trim()).map(|(key, _)| json::key_name(key));
    let keys = keys.filter_map(|key| StateKey::new(key).ok());
    let kind = EventKind::StateChanged {
        keys: keys.take(PATCHED_KEYS_SHOWN_MAX).collect(),
        writes: patch,
        is_patch: true,
    };
    run.note(active, kind);
    Ok(Ok(()))
}

/// The maximum number of keys of a patch that its event names.
const PATCHED_KEYS_SHOWN_MAX: usize = 64;

/// Whether the step keeps the patches of attempts that have failed.
fn keeps_state(run: &LoadedRun, active: &Activation) -> bool {
    let definition = &run.definition.definition;
    let retry = definition.retry(active.step, active.call);
    retry.is_some_and(|retry| retry.keep_state)
}

/// Writes a patch to the state as a scope sees it.
fn write_patch(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    patch: &str,
) -> Result<Result<(), NotWritten>, StoreError> {
    let patch = patch.trim();
    if patch.len() > STATE_BYTES_MAX {
        return Ok(Err(NotWritten::bad_state(format!(
            "expected a state patch of at most {STATE_BYTES_MAX} bytes, but it has {}",
            patch.len()
        ))));
    }
    if !patch.starts_with('{') {
        let message = "expected the state patch to be an object";
        return Ok(Err(NotWritten::bad_state(message.to_owned())));
    }
    let before = text(turn, run, scope)?;
    let mut state = StateFields::default();
    state.add_object(before.as_str());
    let mut patched = StateFields::default();
    for (key, value) in json::fields(patch) {
        let name = json::key_name(key);
        let former = state.value(&name);
        let change = match (value, former) {
            ("null", None) => continue,
            ("null", Some(_)) => Change::Removed,
            (value, former) => {
                Change::Value(json::merge_patch(former.unwrap_or("null"), value).into())
            }
        };
        patched.add(name, change);
    }
    spend(turn, state.len());
    write(turn, run, scope, &patched)
}

/// Adds fields to what a scope has written.
fn write(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    fields: &StateFields<'_>,
) -> Result<Result<(), NotWritten>, StoreError> {
    let key = (run.number, scope);
    let before = turn.get::<States>(&key)?;
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
        let before = before.map_or(0, |before| before.object.as_str().len());
        let others = run.record.state_writes_bytes - before as u64;
        let all = others + after.object.as_str().len() as u64;
        if all > STATE_WRITES_BYTES_MAX {
            return Ok(Err(NotWritten::bad_state(format!(
                "expected the open branches of the run to write at most {STATE_WRITES_BYTES_MAX} bytes to the state, \
                 but it would be {all}"
            ))));
        }
        run.record.state_writes_bytes = all;
    }
    turn.put::<States>(&key, after);
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
    let mut together = StateFields::default();
    for (_, written) in &written {
        together.add_written(written);
    }
    spend(turn, together.len());
    let mut merged = Vec::new();
    for (key, _) in together.iter() {
        match merged_keys.merged(key) {
            None => {}
            Some(Ok(value)) => merged.push((key.to_owned(), value)),
            Some(Err(message)) => {
                let code = MERGE_FAILED;
                return Ok(Err(NotWritten { code, message }));
            }
        }
    }
    for (key, value) in merged {
        together.add(key.into(), Change::Value(value.into()));
    }
    // They are moved, not copied.
    run.record.state_writes_bytes -= written_bytes;
    if let Err(not_written) = write(turn, run, writers.into, &together)? {
        run.record.state_writes_bytes += written_bytes;
        return Ok(Err(not_written));
    }
    for (branch, _) in &written {
        turn.delete::<States>(&(run.number, *branch));
    }
    Ok(Ok(()))
}
