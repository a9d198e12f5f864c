//! Patches of the state that workers return with the results of attempts (W66).

use super::state::{self, NotWritten};
use super::state_fields::StateFields;
use super::step_input;
use crate::ids::ScopeNumber;
use crate::json::{self, Json};
use crate::limits::{JSON_DEPTH_MAX, STATE_BYTES_MAX};
use crate::store::StoreError;
use crate::tables::{
    Activation, EventKind, PayloadRef, StateRecord, States, TargetResult, TaskError,
};
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};

/// Writes what an attempt has returned as a patch, then what its step sets, when the run leaves the step: both, or only what
/// the step keeps of attempts that fail. The error says why it cannot.
pub(super) fn write_last(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<(), NotWritten>, StoreError> {
    if !is_patched(run, active, target_result) {
        let set = state::set(turn, run, active, target_result)?;
        return Ok(set.map(|object| state::note_set(turn, run, active, object)));
    }
    let key = (run.number, active.scope);
    let before = turn.get::<States>(&key)?;
    let bytes_before = run.record.scopes.state_writes_bytes;
    let patch = match write(turn, run, active, target_result)? {
        Ok(patch) => patch,
        Err(not_written) => return Ok(Err(not_written)),
    };
    let set = state::set(turn, run, active, target_result)?;
    if patch.is_some() && set.is_err() && !keeps_state(run, active) {
        run.record.scopes.state_writes_bytes = bytes_before;
        match before {
            Some(before) => turn.put::<States>(&key, before),
            None => turn.delete::<States>(&key),
        }
    } else {
        note(turn, run, active, patch)?;
    }
    Ok(set.map(|object| state::note_set(turn, run, active, object)))
}

/// Whether the patch that a worker has returned with the result of an attempt can be written; the error says why not. It is
/// written once the step is left or tried again.
pub(super) fn check(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<(), NotWritten>, StoreError> {
    let Some(patch) = counted_patch(run, active, target_result) else {
        return Ok(Ok(()));
    };
    let text = turn.payload(patch)?;
    let prepared = prepared(turn, run, active.scope, text.as_str())?;
    Ok(prepared.map(drop))
}

/// Writes the patch that a worker has returned with the result of an attempt (RFC 7396), and notes it; the error says why it
/// cannot. The patch of an attempt that has failed counts only if the step keeps it.
pub(super) fn write_and_note(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<(), NotWritten>, StoreError> {
    match write(turn, run, active, target_result)? {
        Ok(patch) => {
            note(turn, run, active, patch)?;
            Ok(Ok(()))
        }
        Err(not_written) => Ok(Err(not_written)),
    }
}

/// The patch of an attempt, if it counts.
fn counted_patch(
    run: &LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Option<PayloadRef> {
    let patch = target_result.state_patch.as_deref().copied();
    patch.filter(|_| state::writes(target_result) || keeps_state(run, active))
}

/// Whether an attempt with this result patches the state.
pub(super) fn is_patched(
    run: &LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> bool {
    counted_patch(run, active, target_result).is_some()
}

/// Writes the patch of an attempt, if it counts, and returns it; the error says why it cannot.
pub(super) fn write(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Result<Option<PayloadRef>, NotWritten>, StoreError> {
    let Some(patch) = counted_patch(run, active, target_result) else {
        return Ok(Ok(None));
    };
    let text = turn.payload(patch)?;
    Ok(match prepared(turn, run, active.scope, text.as_str())? {
        Ok(record) => {
            state::write(turn, run, active.scope, record)?;
            Ok(Some(patch))
        }
        Err(not_written) => Err(not_written),
    })
}

/// Adds the event of a patch that was written.
pub(super) fn note(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    patch: Option<PayloadRef>,
) -> Result<(), StoreError> {
    let is_silent = run.is_silent(&run.scope_id(active.scope), active.visit);
    let Some(patch) = patch.filter(|_| !is_silent) else {
        return Ok(());
    };
    let text = turn.payload(patch)?;
    let event = run.next_event();
    run.hold_payload(turn, patch, event)?;
    let kind = EventKind::StateChanged {
        keys: state::shown_keys(text.as_str().trim()),
        writes: patch,
        is_patch: true,
    };
    run.note(active, kind);
    Ok(())
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
    match prepared(turn, run, active.scope, patch.as_str())? {
        Ok(record) => state::write(turn, run, active.scope, record)?,
        Err(NotWritten { code, message, .. }) => {
            let code = code.to_owned();
            return Ok(Err(TaskError { code, message }));
        }
    }
    let patch = run.store_payload(turn, patch.clone());
    note(turn, run, active, Some(patch))?;
    // If the input cannot be mapped, the next attempt gets that of the last one.
    let mapped = step_input::map_again(turn, run, active)?;
    Ok(Ok(mapped.ok().map(|()| active.input)))
}

/// Whether the step keeps the patches of attempts that have failed. A compensation and the handler of a cancelled step patch
/// nothing.
pub(super) fn keeps_state(run: &LoadedRun, active: &Activation) -> bool {
    let definition = &run.definition.definition;
    let retry = definition.retry(active.step, active.call);
    !active.call.is_after_visit() && retry.is_some_and(|retry| retry.keep_state)
}

/// What a scope will have written after a patch of the state as the scope sees it.
fn prepared(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    patch: &str,
) -> Result<Result<StateRecord, NotWritten>, StoreError> {
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
    // Merging is recursive.
    let depth = json::depth(patch);
    if depth > JSON_DEPTH_MAX {
        return Ok(Err(NotWritten::bad_state(format!(
            "expected a state patch that nests at most {JSON_DEPTH_MAX} levels deep, but it has {depth}"
        ))));
    }
    let before = state::text(turn, run, scope)?;
    let mut state = StateFields::default();
    state.add_object(before.as_str());
    let patched = state.patch_changes(patch);
    state::spend(turn, state.len() + json::fields(patch).count());
    state::prepared(turn, run, scope, &patched)
}
