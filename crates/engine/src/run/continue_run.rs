//! Continuing a run that was resumed, and the scopes below it, where they have stopped (W89).

use super::child::Above;
use super::reopen::{check, reopen};
use super::{
    enter, for_each, linked_attempts, resumed_branches, run_output, run_timeout, timeout_timers,
};
use crate::definition::{BlockIndex, BuiltInTerminal, Target, TerminalStatus};
use crate::ids::{RunNumber, ScopeNumber, TerminalName};
use crate::mostly_default::MostlyDefault;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, Cursor, EndCause, Ending, EventKind, ParentLink,
    ResumableSteps, RunStatus, StepResults, TargetResult, UndoOwner, Work,
};
use crate::turn::{Abort, LoadedRun, NewVisit, Turn, TurnResult};
use std::sync::Arc;

/// Continues a run, or a scope below it, at its cursor.
pub(super) fn continue_scope(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    scope: ScopeNumber,
) -> TurnResult<()> {
    let is_live = match scope {
        ScopeNumber::ROOT => run.record.status.is_open() && run.record.fixed_end.is_none(),
        scope => run.is_scope_live(turn, scope)?,
    };
    if !is_live {
        return Ok(());
    }
    if scope == ScopeNumber::ROOT {
        match run.record.has_begun() {
            true => run_timeout::begin(turn, run),
            false if !enter::begin_run(turn, queue, run)? => return Ok(()),
            false => {}
        }
    }
    let (cursor, block) = match run.scope_mut(scope) {
        Some(below) => (below.cursor.take(), below.block),
        None => {
            let cursor = run
                .record
                .resumption
                .take(|resumption| &mut resumption.cursor);
            (cursor.map(|cursor| cursor.at), BlockIndex::ROOT)
        }
    };
    match cursor {
        None => {
            let step = run.definition.definition.block(block).start;
            queue.push(run.number, Work::Enter { scope, step });
        }
        Some(Cursor::Step {
            step,
            visits_count,
            is_entered,
        }) => {
            let visit = visits_count + 1;
            let visit = visit_after(turn, run, NewVisit { scope, step, visit })?;
            match is_entered {
                true => continue_step(turn, queue, run, visit)?,
                false => enter::enter_again(turn, queue, run, visit)?,
            }
        }
        Some(Cursor::FinishStep {
            step,
            visits_count,
            target_result,
        }) => {
            let visit = visits_count + 1;
            let visit = visit_after(turn, run, NewVisit { scope, step, visit })?;
            let active = run.activate(turn.now_ms(), visit);
            run.note(&active, EventKind::StepStarted);
            let activation = active.number;
            run.put_back(active);
            let target_result = TargetResult {
                from: Awaited::Nothing,
                ..target_result
            };
            let work = Work::FinishStep {
                activation,
                target_result,
            };
            queue.push(run.number, work);
        }
        Some(Cursor::EndScope(end)) => queue.push(run.number, Work::EndScope(end)),
        Some(Cursor::Finish { ending, terminal }) => {
            let ending = ending_at(run, ending, terminal);
            queue.push(run.number, Work::Finish(ending));
        }
    }
    Ok(())
}

/// The end at the terminal with this name, which the revision of the run may have elsewhere than the former one, or not at
/// all.
fn ending_at(run: &LoadedRun, ending: Ending, terminal: Option<TerminalName>) -> Ending {
    let Some(name) = terminal else {
        return ending;
    };
    match run.definition.definition.terminal_named(&name) {
        Some(index) => Ending {
            terminal: Target::Custom(index),
            ..ending
        },
        None => {
            let detail = format!(
                "expected the terminal \"{name}\", which the run had reached, but this revision does not have it"
            );
            Ending {
                scope: ending.scope,
                terminal: Target::BuiltIn(BuiltInTerminal::Failed),
                detail: Some(detail),
                cause: EndCause {
                    code: NO_TERMINAL.to_owned(),
                    ..ending.cause
                },
            }
        }
    }
}

/// The code of a run that was resumed with a revision without the terminal that it had reached.
const NO_TERMINAL: &str = "terminal_not_found";

/// The visit that follows the former ones: the one that was noted, or that after the last result.
fn visit_after(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    noted: NewVisit,
) -> Result<NewVisit, StoreError> {
    let former = turn.get::<StepResults>(&(run.number, noted.scope, noted.step))?;
    let former = former.map_or(0, |former| former.visit);
    Ok(NewVisit {
        visit: noted.visit.max(former + 1),
        ..noted
    })
}

/// Continues what a step has opened or called. A step that did neither, or that cannot continue it, is entered again.
fn continue_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    visit: NewVisit,
) -> TurnResult<()> {
    let key = (run.number, visit.scope, visit.step);
    if let Some(stopped) = turn.get::<ResumableSteps>(&key)? {
        turn.delete::<ResumableSteps>(&key);
        let stopped = Arc::unwrap_or_clone(stopped);
        match stopped.state {
            ActivationState::Child(child) => {
                let step = StoppedStep {
                    visit,
                    stopped,
                    child,
                };
                if continue_child(turn, queue, run, step)? {
                    return Ok(());
                }
            }
            _ => return continue_blocks(turn, queue, run, stopped),
        }
    }
    enter::enter_again(turn, queue, run, visit)
}

/// Makes a step active again that has opened blocks, with fresh timers.
fn continue_blocks(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    stopped: Activation,
) -> TurnResult<()> {
    let now_ms = turn.now_ms();
    let mut active = run.activate_again(Activation {
        attempt: 1,
        earlier_attempts_count: 0,
        started_at_ms: now_ms,
        call_started_at_ms: now_ms,
        timeouts: MostlyDefault::default(),
        ..stopped
    });
    active.ending.cancelled_with = None;
    run.note(&active, EventKind::StepStarted);
    timeout_timers::start_total(turn, run, &mut active);
    if active.ending.undoing.is_some() {
        // Its blocks have ended. What is left of them is undone before the step ends.
        let owner = UndoOwner::Step(active.number);
        run.put_back(active);
        queue.push(run.number, Work::Undo { owner });
        return Ok(());
    }
    match active.state {
        ActivationState::Iterations(_) => for_each::resume(turn, queue, run, active),
        _ => resumed_branches::resume(turn, queue, run, active),
    }
}

/// A step that has called a child.
struct StoppedStep {
    /// The visit that continues it.
    visit: NewVisit,
    stopped: Activation,
    /// The child, by its first attempt.
    child: RunNumber,
}

/// Continues a step that has called a child, which is resumed if it has not completed. False if that is not possible.
fn continue_child(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    step: StoppedStep,
) -> TurnResult<bool> {
    let StoppedStep {
        visit,
        stopped,
        child: first,
    } = step;
    let last = linked_attempts::latest(turn, first)?;
    if turn.is_quarantined(last) {
        return Ok(false);
    }
    let above = Above::of(turn, run)?;
    let Some(mut child) = turn.load_run_if_kept(last)? else {
        return Ok(false);
    };
    let activation = run.record.activations_count + 1;
    let cursor = child.record.resumption.cursor.as_ref();
    // Nothing says with which step it would continue.
    let is_after_success = cursor.is_some_and(|cursor| cursor.is_after_success);
    let work = match child.record.status {
        RunStatus::Ended(TerminalStatus::Completed) => {
            let child = first;
            Some((run.number, Work::ChildEnded { activation, child }))
        }
        RunStatus::Ended(_) if is_after_success => {
            turn.put_back_run(child);
            return Ok(false);
        }
        RunStatus::Ended(_) => {
            match check(turn, &child).and_then(|()| reopen(turn, &mut child, &above, None)) {
                Ok(work) => work.map(|work| (last, work)),
                Err(Abort::Rejected(_)) => {
                    turn.put_back_run(child);
                    return Ok(false);
                }
                Err(Abort::Store(error)) => return Err(Abort::Store(error)),
            }
        }
        // It was resumed by itself, and has not ended again.
        _ if child.record.fixed_end.is_none() || run_output::is_checking(&child) => None,
        _ => {
            turn.put_back_run(child);
            return Ok(false);
        }
    };
    child.record.parent = Some(ParentLink {
        run: run.number,
        activation,
        is_detached: false,
    });
    let is_queued = child.record.is_held_up();
    turn.put_back_run(child);
    let mut active = run.activate(turn.now_ms(), visit);
    assert_eq!(active.number, activation, "no step was activated meanwhile");
    run.note(&active, EventKind::StepStarted);
    active.input = stopped.input;
    active.state = ActivationState::Child(first);
    active.open_call(&run.definition.definition);
    timeout_timers::start_total(turn, run, &mut active);
    timeout_timers::start_attempt(turn, run, &mut active);
    if is_queued {
        timeout_timers::start_queue(turn, run, &mut active);
    }
    run.put_back(active);
    if let Some((of, work)) = work {
        queue.push(of, work);
    }
    Ok(true)
}
