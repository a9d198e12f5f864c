//! Releasing a run from quarantine (design rule 10): restores what it waits for, and delivers the results that arrived
//! meanwhile.

use super::advance::advance_all;
use super::outcome::name;
use super::step_timer::{deadline_timer, wake_timer};
use super::{
    concurrency, continuation, exclusion, index, linked_attempts, run_output, run_timeout,
    schema_check, start_timer, timeout_timers,
};
use crate::ids::RunNumber;
use crate::mostly_default::MostlyDefault;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Activations, Awaited, EventKind, OpenApproval, PlanWait,
    RunRecord, SignalWait, TargetResult, Work,
};
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};
use crate::{schedule, task, timer};

/// Releases the run, if it exists.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> TurnResult<()> {
    let Some(mut run) = turn.load_run_if_kept(number)? else {
        return Ok(());
    };
    run.note_run(EventKind::RunReleased);
    schedule::run_released(turn, &run.record)?;
    continuation::restore(turn, &mut run)?;
    run_timeout::restore(turn, &mut run)?;
    start_timer::restore(turn, &mut run)?;
    if !run.record.status.is_open() {
        index::expire_again(turn, number, &run.record, &run.definition)?;
        turn.put_back_run(run);
        return Ok(());
    }
    // A run that is about to end continues, although its parent has ended.
    let is_ending = run.record.fixed_end.is_some();
    let mut reason = match is_detached(turn, &run.record)? {
        true => None,
        false => why_unwanted(turn, number, &run.record)?,
    };
    if is_ending && let Some(unwanted) = reason.take() {
        linked_attempts::prevent(&mut run, Some(&unwanted));
    }
    // The run is cancelled before what has arrived is processed: a step that has succeeded meanwhile can be undone.
    let is_unwanted = reason.is_some();
    let mut works: Vec<_> = is_unwanted
        .then_some(Work::Cancel { reason })
        .into_iter()
        .collect();
    // Its keys may have become free without effect.
    if run.record.awaited_keys().is_some() {
        works.push(Work::TakeKeys);
    }
    // Their rows still exist, but earlier verdicts were rejected for good.
    if run.record.awaits_locks() {
        exclusion::request(turn, number);
    }
    run_output::restore(turn, &run)?;
    for activation in run.active(turn)? {
        if let Some(active) = run.take(turn, activation)? {
            works.extend(release_step(turn, &mut run, active)?);
        }
    }
    turn.put_back_run(run);
    advance_all(turn, number, works)
}

/// Whether the run has ended while its parent was quarantined, and the parent has not received its result yet.
pub(crate) fn is_awaited(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<bool, StoreError> {
    let Some(run) = turn.run_record(number)? else {
        return Ok(false);
    };
    let Some(link) = run.parent else {
        return Ok(false);
    };
    // The parent gets the result of the last attempt, and knows the first one (W77).
    let is_between = run
        .chain
        .is_some_and(|chain| chain.next.is_some() && chain.first != number);
    if is_between {
        return Ok(false);
    }
    let parent = turn.run_record(link.run)?;
    let has_work_left = parent.is_some_and(|parent| parent.continuation.is_some());
    if !has_work_left && !turn.is_quarantined(link.run) {
        return Ok(false);
    }
    Ok(why_unwanted(turn, number, &run)?.is_none())
}

/// Whether a child was resumed by itself, and its parent has not been resumed since: nothing awaits it, and it continues.
fn is_detached(turn: &mut Turn<'_, '_>, run: &RunRecord) -> Result<bool, StoreError> {
    let Some(link) = run.parent.filter(|link| link.is_detached) else {
        return Ok(false);
    };
    // A parent that was resumed meanwhile has started another child.
    let parent = turn.run_record(link.run)?;
    Ok(parent.is_none_or(|parent| !parent.status.is_open()))
}

/// Why a child is no longer awaited; `None` if it is, and for a run without a parent.
fn why_unwanted(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    run: &RunRecord,
) -> Result<Option<String>, StoreError> {
    let Some(link) = run.parent else {
        return Ok(None);
    };
    let Some(parent) = turn.run_record(link.run)? else {
        return Ok(Some("its parent ended".to_owned()));
    };
    let first = run.first_attempt(number);
    let waiting = turn.get::<Activations>(&(link.run, link.activation))?;
    let waiting = waiting.filter(|active| active.state.awaits() == Awaited::Child(first));
    Ok(match waiting {
        None => Some(format!("parent {} ended", parent.id)),
        // Its end is awaited.
        Some(active) if active.is_stopping() && run.status.is_open() => {
            Some(format!("parent {} cancelled it", parent.id))
        }
        Some(_) => None,
    })
}

/// Restores the timers of a step, and the request for a check.
fn restore_timers(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    active: &mut Draft<Activation>,
) -> TurnResult<()> {
    let mut state = active.state.clone();
    match &mut state {
        ActivationState::Plan(plan) => {
            if let PlanWait::Retry { due_ms } = &mut plan.wait {
                *due_ms = timer::restore(turn, wake_timer(at, *due_ms))?;
            }
        }
        ActivationState::Retry { due_ms }
        | ActivationState::Poll { due_ms }
        | ActivationState::Timer { due_ms }
        | ActivationState::Delay { due_ms } => {
            *due_ms = timer::restore(turn, wake_timer(at, *due_ms))?;
        }
        ActivationState::Signal(SignalWait {
            deadline_at_ms: Some(due_ms),
            ..
        })
        | ActivationState::Approval(OpenApproval {
            deadline_at_ms: Some(due_ms),
            ..
        }) => {
            *due_ms = timer::restore(turn, deadline_timer(at, *due_ms))?;
        }
        // Its row still exists, but the earlier validation result was rejected for good.
        ActivationState::ChildInput { .. } | ActivationState::OutputCheck(_) => {
            schema_check::request(turn, at);
        }
        ActivationState::Executing
        | ActivationState::Action(_)
        | ActivationState::Signal(SignalWait {
            deadline_at_ms: None,
            ..
        })
        | ActivationState::Approval(OpenApproval {
            deadline_at_ms: None,
            ..
        })
        | ActivationState::Child(_)
        | ActivationState::Branches(_)
        | ActivationState::Iterations(_) => {}
    }
    if active.state != state {
        active.state = state;
    }
    // Its child may have begun meanwhile.
    if let ActivationState::Child(child) = active.state
        && !concurrency::is_waiting(turn, child)?
    {
        timeout_timers::end_queue(turn, at, active);
    }
    Ok(timeout_timers::restore(turn, at, active)?)
}

/// Restores what a step waits for; returns the work that arrived meanwhile.
fn release_step(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<Option<Work>> {
    let at = run.at(&active);
    let activation = active.number;
    restore_timers(turn, at, &mut active)?;
    let awaited = active.state.awaits();
    run.put_back(active);
    match awaited {
        // What executes was in the middle of a turn, or its work waits in a continuation, which does it.
        Awaited::Nothing => {
            let is_pending = run.record.continuation.is_some();
            Ok((!is_pending).then_some(Work::Execute { activation }))
        }
        Awaited::Action(action_run) => {
            let target_result = task::release_from_quarantine(turn, run, action_run)?;
            Ok(target_result.map(|target_result| Work::FinishStep {
                activation,
                target_result,
            }))
        }
        Awaited::Child(child) => release_child(turn, activation, child),
        Awaited::Signal
        | Awaited::Approval
        | Awaited::Verdict
        | Awaited::Time
        | Awaited::Branches => Ok(None),
    }
}

/// A child that is still open delivers its result itself.
fn release_child(
    turn: &mut Turn<'_, '_>,
    activation: u64,
    child: RunNumber,
) -> TurnResult<Option<Work>> {
    // The child is kept for its parent, however long the quarantine lasts, unless another bug loses it.
    let Some(kept) = turn.load_run_if_kept(child)? else {
        let target_result = TargetResult {
            from: Awaited::Child(child),
            outcome: name::of(name::EXECUTION_FAILURE),
            output: None,
            reason: Some("the child run was deleted while this run was quarantined".to_owned()),
            is_retryable: false,
            cause: MostlyDefault::default(),
            not_before_ms: None,
            state_patch: None,
        };
        return Ok(Some(Work::FinishStep {
            activation,
            target_result,
        }));
    };
    turn.put_back_run(kept);
    let last = linked_attempts::latest(turn, child)?;
    let record = turn.run_record(last)?;
    let is_open = record.is_some_and(|last| last.status.is_open());
    if !is_open {
        index::expire_child(turn, child)?;
        index::expire_child(turn, last)?;
    }
    Ok((!is_open).then_some(Work::ChildEnded { activation, child }))
}
