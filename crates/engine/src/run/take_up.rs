//! A run that was set aside goes on (design rule 10): it gets back what it waits for, and is told what
//! came in meanwhile.

use super::advance::advance_all;
use super::continuation;
use super::enter::signal_timer;
use super::index;
use super::loaded::{LoadedRun, load_if_kept, put_back, record};
use super::outcome::name;
use super::settle::wake_timer;
use crate::effect::Effect;
use crate::ids::RunNumber;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Activations, Awaited, EventKind, InputChecks, PlanState, PlanWait,
    RunRecord, Settled, Work,
};
use crate::turn::{Draft, Outcome, Turn};
use crate::{task, timer};

/// Takes the run up, if it is there.
pub(crate) fn take_up(turn: &mut Turn<'_, '_>, number: RunNumber) -> Outcome<()> {
    let Some(mut run) = load_if_kept(turn, number)? else {
        return Ok(());
    };
    run.note_run(EventKind::RunReleased);
    if !run.record.status.is_open() {
        index::expire_again(turn, number, (&run.record, &run.definition))?;
        put_back(turn, run);
        return Ok(());
    }
    if let Some(reason) = why_unwanted(turn, number, &run.record)? {
        put_back(turn, run);
        let reason = Some(reason);
        return advance_all(turn, number, [Work::Cancel { reason }]);
    }
    continuation::restore(turn, &mut run)?;
    let mut works = Vec::new();
    for activation in run.active(turn)? {
        if let Some(active) = run.take(turn, activation)? {
            works.extend(take_up_step(turn, &mut run, active)?);
        }
    }
    put_back(turn, run);
    advance_all(turn, number, works)
}

/// Whether the run has ended while the one that waits for its end was set aside, or has not heard of it yet.
pub(crate) fn is_awaited(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<bool, StoreError> {
    let Some(run) = record(turn, number)? else {
        return Ok(false);
    };
    let Some(link) = run.parent else {
        return Ok(false);
    };
    let parent = record(turn, link.run)?;
    let has_work_left = parent.is_some_and(|parent| parent.continuation.is_some());
    if !has_work_left && !turn.is_quarantined(link.run) {
        return Ok(false);
    }
    Ok(why_unwanted(turn, number, &run)?.is_none())
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
    let Some(parent) = record(turn, link.run)? else {
        return Ok(Some("its parent ended".to_owned()));
    };
    let waiting = turn.get::<Activations>(&(link.run, link.activation))?;
    let is_wanted = waiting.is_some_and(|active| active.state.awaits() == Awaited::Child(number));
    Ok((!is_wanted).then(|| format!("parent {} ended", parent.id)))
}

/// Gives a step back what it waits for; the work is what came in meanwhile.
fn take_up_step(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> Outcome<Option<Work>> {
    let at = run.at(&active);
    let activation = active.number;
    let mut state = active.state.clone();
    match &mut state {
        ActivationState::Plan(PlanState {
            wait: PlanWait::Retry { due_ms },
            ..
        })
        | ActivationState::Retry { due_ms }
        | ActivationState::Poll { due_ms } => {
            *due_ms = timer::restore(turn, wake_timer(at, *due_ms))?;
        }
        ActivationState::Signal {
            deadline_ms: Some(due_ms),
        } => {
            *due_ms = timer::restore(turn, signal_timer(at, *due_ms))?;
        }
        ActivationState::ChildInput { .. } => {
            // Its row is there still, but whoever checks has been refused for good.
            turn.put::<InputChecks>(&(at.run, activation), ());
            let parent = at.run;
            turn.effect(Effect::CheckChildInput { parent, activation });
        }
        ActivationState::Executing
        | ActivationState::Action(_)
        | ActivationState::Signal { deadline_ms: None }
        | ActivationState::Child(_)
        | ActivationState::Plan(_) => {}
    }
    if active.state != state {
        active.state = state;
    }
    let awaited = active.state.awaits();
    run.put_back(active);
    match awaited {
        // What executes was in the middle of a turn, or its work waits in a continuation, which does it.
        Awaited::Nothing => {
            let is_pending = run.record.continuation.is_some();
            Ok((!is_pending).then_some(Work::Execute { activation }))
        }
        Awaited::Action(action_run) => {
            let settled = task::take_up(turn, run, action_run)?;
            Ok(settled.map(|settled| Work::Settle {
                activation,
                settled,
            }))
        }
        Awaited::Child(child) => take_up_child(turn, activation, child),
        Awaited::Signal | Awaited::Verdict | Awaited::Time => Ok(None),
    }
}

/// A child that goes on tells its parent itself.
fn take_up_child(
    turn: &mut Turn<'_, '_>,
    activation: u32,
    child: RunNumber,
) -> Outcome<Option<Work>> {
    // It is kept for its parent, however long that is set aside, unless another bug loses it.
    let Some(kept) = load_if_kept(turn, child)? else {
        let settled = Settled {
            from: Awaited::Child(child),
            outcome: name::of(name::EXECUTION_FAILURE),
            output: None,
            reason: Some("its child was forgotten while the run was set aside".to_owned()),
            is_retryable: false,
        };
        return Ok(Some(Work::Settle {
            activation,
            settled,
        }));
    };
    let is_open = kept.record.status.is_open();
    if !is_open {
        index::expire_again(turn, child, (&kept.record, &kept.definition))?;
    }
    put_back(turn, kept);
    Ok((!is_open).then_some(Work::ChildEnded { activation, child }))
}
