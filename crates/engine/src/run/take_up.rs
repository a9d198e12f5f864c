//! A run that was set aside goes on (design rule 10): it gets back what it waits for, and is told what
//! came in meanwhile.

use super::advance::{Settled, Work, advance_all};
use super::enter::signal_timer;
use super::index;
use super::loaded::{ActivationRef, ActiveStep, Loaded, load_if_kept};
use super::outcome::name;
use super::settle::wake_timer;
use crate::effect::Effect;
use crate::ids::{ActionRunNumber, RunNumber};
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Event, EventKind, InputChecks, PlanState, PlanWait, RunRecord,
};
use crate::turn::{Outcome, Turn};
use crate::{task, timer};

/// Takes the run up, if it is there.
pub(crate) fn take_up(turn: &mut Turn<'_, '_>, number: RunNumber) -> Outcome<()> {
    let Some(run) = load_if_kept(turn, number)? else {
        return Ok(());
    };
    let run = run.record;
    let kind = EventKind::RunReleased;
    turn.event(number, Event { step: None, kind });
    if !run.status.is_open() {
        return index::expire_again(turn, number, &run);
    }
    if let Some(reason) = why_unwanted(turn, number, &run)? {
        let reason = Some(reason);
        let run = number;
        return advance_all(turn, [Work::Cancel { run, reason }]).map(drop);
    }
    let mut works = Vec::new();
    for active in &run.active {
        works.extend(take_up_step(turn, number, active)?);
    }
    advance_all(turn, works).map(drop)
}

/// Whether the run has ended while the one that waits for its end was set aside.
pub(crate) fn is_awaited(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<bool, StoreError> {
    let Some(run) = load_if_kept(turn, number)? else {
        return Ok(false);
    };
    match run.record.parent {
        Some(link) if turn.is_quarantined(link.run) => {
            Ok(why_unwanted(turn, number, &run.record)?.is_none())
        }
        Some(_) | None => Ok(false),
    }
}

/// Why a child is not waited for any more; `None` for one that is, and for a run without a parent.
fn why_unwanted(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    run: &RunRecord,
) -> Result<Option<String>, StoreError> {
    let Some(link) = run.parent else {
        return Ok(None);
    };
    let Some(parent) = load_if_kept(turn, link.run)? else {
        return Ok(Some("its parent ended".to_owned()));
    };
    let waiting = parent.record.activation(link.activation);
    let is_wanted = waiting.is_some_and(|active| active.state == ActivationState::Child(number));
    Ok((!is_wanted).then(|| format!("parent {} ended", parent.record.id)))
}

/// Gives a step back what it waits for; the work is what came in meanwhile.
fn take_up_step(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    active: &Activation,
) -> Outcome<Option<Work>> {
    let activation = active.number;
    let at = ActivationRef { run, activation };
    match &active.state {
        ActivationState::Executing => Ok(Some(at.execute())),
        ActivationState::Action(action_run) => take_up_task(turn, at, *action_run),
        ActivationState::Plan(plan) => take_up_plan(turn, at, plan),
        ActivationState::Signal { deadline_ms } => {
            if let Some(due_ms) = *deadline_ms {
                let deadline_ms = Some(timer::restore(turn, signal_timer(at, due_ms))?);
                put_state(turn, at, ActivationState::Signal { deadline_ms })?;
            }
            Ok(None)
        }
        ActivationState::Retry { due_ms } => {
            let due_ms = timer::restore(turn, wake_timer(at, *due_ms))?;
            put_state(turn, at, ActivationState::Retry { due_ms })?;
            Ok(None)
        }
        ActivationState::Poll { due_ms } => {
            let due_ms = timer::restore(turn, wake_timer(at, *due_ms))?;
            put_state(turn, at, ActivationState::Poll { due_ms })?;
            Ok(None)
        }
        ActivationState::Child(child) => take_up_child(turn, at, *child),
        ActivationState::ChildInput { .. } => {
            // Its row is there still, but whoever checks has been refused for good.
            turn.put::<InputChecks>(&(run, activation), ());
            let parent = run;
            turn.effect(Effect::CheckChildInput { parent, activation });
            Ok(None)
        }
    }
}

fn take_up_plan(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    plan: &PlanState,
) -> Outcome<Option<Work>> {
    match plan.wait {
        PlanWait::Executing => Ok(Some(at.execute())),
        PlanWait::Action(action_run) => take_up_task(turn, at, action_run),
        PlanWait::Retry { due_ms } => {
            let due_ms = timer::restore(turn, wake_timer(at, due_ms))?;
            let wait = PlanWait::Retry { due_ms };
            let plan = plan.clone();
            put_state(turn, at, ActivationState::Plan(PlanState { wait, ..plan }))?;
            Ok(None)
        }
    }
}

fn take_up_task(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    action_run: ActionRunNumber,
) -> Outcome<Option<Work>> {
    let settled = task::take_up(turn, action_run)?;
    Ok(settled.map(|settled| at.settle(settled)))
}

/// A child that goes on tells its parent itself.
fn take_up_child(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    child: RunNumber,
) -> Outcome<Option<Work>> {
    // It is kept for its parent, however long that is set aside, unless another bug loses it.
    let Some(Loaded { record, .. }) = load_if_kept(turn, child)? else {
        return Ok(Some(at.settle(Settled {
            outcome: name::of(name::EXECUTION_FAILURE),
            output: None,
            reason: Some("its child was forgotten while the run was set aside".to_owned()),
            is_retryable: false,
        })));
    };
    if record.status.is_open() {
        return Ok(None);
    }
    index::expire_again(turn, child, &record)?;
    Ok(Some(Work::HearChild {
        run: at.run,
        activation: at.activation,
        child,
    }))
}

/// Notes what a step waits for, where that has changed.
fn put_state(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    state: ActivationState,
) -> Result<(), StoreError> {
    if let Some(mut active) = ActiveStep::load(turn, at)?
        && active.activation.state != state
    {
        active.activation.state = state;
        active.put(turn);
    }
    Ok(())
}
