//! Noting where a run and the scopes below it stop, so that a resume continues there (W89).

use super::child::FIRST_WORK;
use super::outcome::is_good;
use super::run_output;
use crate::definition::{StepIndex, Target, TerminalStatus};
use crate::ids::ScopeNumber;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    ActivationState, CompensationProgress, Cursor, Ending, PendingWorks, RunCursor, RunRecord,
    ScopeEnd, StepResults, TargetResult, Work,
};
use crate::turn::{LoadedRun, Turn};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What is still to be processed of a run, in this turn or in a later one.
#[derive(Default)]
pub(super) struct PendingWork {
    /// The results of active steps.
    results: BTreeMap<u64, TargetResult>,
    /// What scopes do next that have no active step.
    next: BTreeMap<ScopeNumber, Work>,
}

impl PendingWork {
    /// Looks through the queue of the turn, and through the work that was deferred.
    pub(super) fn of(
        turn: &mut Turn<'_, '_>,
        queue: &WorkQueue,
        run: &LoadedRun,
    ) -> Result<Self, StoreError> {
        let mut pending = Self::default();
        let own = queue
            .works
            .iter()
            .filter(|(of_run, _)| *of_run == run.number);
        own.for_each(|(_, work)| pending.add(work));
        if run.record.continuation.is_some() {
            turn.visit::<PendingWorks>(&run.number, |_, work| {
                pending.add(&work);
                ControlFlow::Continue(())
            })?;
        }
        Ok(pending)
    }

    /// Whether there is a result of an active step.
    pub(super) fn has_result(&self, activation: u64) -> bool {
        self.results.contains_key(&activation)
    }

    fn add(&mut self, work: &Work) {
        match work {
            Work::FinishStep {
                activation,
                target_result,
            } => {
                self.results.insert(*activation, target_result.clone());
            }
            Work::Enter { scope, .. }
            | Work::Finish(Ending { scope, .. })
            | Work::EndScope(ScopeEnd { scope, .. }) => {
                self.next.insert(*scope, work.clone());
            }
            _ => {}
        }
    }
}

/// Notes where scopes that are cancelled stop. Those that have stopped before keep their cursor.
pub(super) fn note_scopes(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scopes: &[ScopeNumber],
    pending: &PendingWork,
) -> Result<(), StoreError> {
    if scopes.is_empty() {
        return Ok(());
    }
    let active = active_steps(turn, run, pending)?;
    for number in scopes {
        let scope = run.scope_mut(*number).expect("the scope is open");
        if scope.cursor.is_some() {
            continue;
        }
        let cursor = match active.get(number) {
            Some(cursor) => Some(cursor.clone()),
            None => of_pending(turn, run, *number, pending)?,
        };
        run.scope_mut(*number).expect("the scope is open").cursor = cursor;
    }
    Ok(())
}

/// Notes where all open scopes below a run stop; returns them, the innermost ones first.
pub(super) fn note_open_scopes(
    turn: &mut Turn<'_, '_>,
    queue: &WorkQueue,
    run: &mut LoadedRun,
) -> Result<Vec<ScopeNumber>, StoreError> {
    if run.record.scopes.opened_count == 0 {
        return Ok(Vec::new());
    }
    run.look_up_scopes(turn)?;
    let open = run.open_scopes().map(|scope| scope.id.number);
    let mut scopes: Vec<ScopeNumber> = open.collect();
    let pending = PendingWork::of(turn, queue, run)?;
    note_scopes(turn, run, &scopes, &pending)?;
    scopes.reverse();
    Ok(scopes)
}

/// Notes where a run stops whose end is decided.
pub(super) fn note_run(
    turn: &mut Turn<'_, '_>,
    queue: &WorkQueue,
    run: &mut LoadedRun,
    ending: &Ending,
) -> Result<(), StoreError> {
    // Otherwise it fails if its output is invalid.
    let is_final = !run_output::is_checked_at(run, ending.terminal);
    if is_final && status_at(run, ending) == TerminalStatus::Completed {
        run.record
            .resumption
            .take(|resumption| &mut resumption.cursor);
        return Ok(());
    }
    if let Some(step) = ending.cause.step {
        let cursor = after_visits(turn, run, (ending.scope, step))?;
        match run.scope(turn, ending.scope)?.is_some() {
            true => run.scope_mut(ending.scope).expect("it is open").cursor = Some(cursor),
            false => set(run, cursor),
        }
    }
    if ending.cause.step.is_none() || ending.scope != ScopeNumber::ROOT {
        let pending = PendingWork::of(turn, queue, run)?;
        let active = active_steps(turn, run, &pending)?.remove(&ScopeNumber::ROOT);
        let cursor = match active {
            Some(cursor) => Some(cursor),
            None => of_pending(turn, run, ScopeNumber::ROOT, &pending)?,
        };
        if let Some(cursor) = cursor {
            set(run, cursor);
        }
    }
    if let Some(cursor) = &mut run.record.resumption.cursor {
        let outcome = ending.cause.outcome.as_ref();
        cursor.is_after_success = outcome.is_some_and(is_good);
    }
    Ok(())
}

/// Notes that a step is not entered, because its scope has reached a limit of the run.
pub(super) fn note_refused(run: &mut LoadedRun, scope: ScopeNumber, step: StepIndex) {
    let cursor = Cursor::Step {
        step,
        visits_count: 0,
        is_entered: false,
    };
    match scope {
        ScopeNumber::ROOT => set(run, cursor),
        scope => {
            if let Some(scope) = run.scope_mut(scope) {
                scope.cursor = Some(cursor);
            }
        }
    }
}

fn set(run: &mut LoadedRun, at: Cursor) {
    run.record.resumption.cursor = Some(RunCursor {
        at,
        is_after_success: false,
    });
}

fn status_at(run: &LoadedRun, ending: &Ending) -> TerminalStatus {
    let status = run.definition.definition.status_at(ending.terminal);
    status.expect("a run ends at a terminal, never at a step")
}

/// Where scopes stop that have an active step: at this step.
fn active_steps(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    pending: &PendingWork,
) -> Result<BTreeMap<ScopeNumber, Cursor>, StoreError> {
    let mut cursors = BTreeMap::new();
    let definition = run.definition.clone();
    for number in run.active(turn)? {
        if let Some(active) = run.activation(turn, number)?
            && !active.call.is_after_visit()
        {
            // A step that waits for its time has not been entered yet (W74).
            let is_entered = !matches!(active.state, ActivationState::Delay { .. });
            let (step, visits_count) = (active.step, active.visit - u32::from(!is_entered));
            let result = pending.results.get(&number);
            let result = result.filter(|result| result.from == active.state.awaits());
            // What a call has done may have to be undone, so the call is made again.
            let is_call = definition.definition.step(step).run().is_some();
            let cursor = match result.filter(|_| !is_call && !active.state.opens_scopes()) {
                Some(target_result) => Cursor::FinishStep {
                    step,
                    visits_count,
                    target_result: target_result.clone(),
                },
                None => Cursor::Step {
                    step,
                    visits_count,
                    is_entered,
                },
            };
            cursors.insert(active.scope, cursor);
        }
    }
    Ok(cursors)
}

/// Where a scope stops that has no active step.
fn of_pending(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    scope: ScopeNumber,
    pending: &PendingWork,
) -> Result<Option<Cursor>, StoreError> {
    Ok(match pending.next.get(&scope) {
        Some(Work::Enter { step, .. }) => {
            Some(after_visits(turn, run, (scope, *step))?.before_entry())
        }
        Some(Work::EndScope(end)) if is_good(&end.outcome) => Some(Cursor::EndScope(end.clone())),
        Some(Work::EndScope(end)) => Some(after_visits(turn, run, (scope, end.step))?),
        Some(Work::Finish(ending)) if status_at(run, ending) == TerminalStatus::Completed => {
            Some(finish(run, ending.clone()))
        }
        Some(Work::Finish(ending)) => match ending.cause.step {
            Some(step) => Some(after_visits(turn, run, (scope, step))?),
            None => None,
        },
        _ => None,
    })
}

/// The end of the run at the terminal that was reached.
fn finish(run: &LoadedRun, ending: Ending) -> Cursor {
    let terminal = match ending.terminal {
        Target::Custom(index) => Some(run.definition.definition.terminal(index).name.clone()),
        Target::BuiltIn(_) | Target::Step(_) | Target::End(_) => None,
    };
    Cursor::Finish { ending, terminal }
}

/// The last visit to a step so far.
pub(super) fn after_visits(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    (scope, step): (ScopeNumber, StepIndex),
) -> Result<Cursor, StoreError> {
    let former = turn.get::<StepResults>(&(run.number, scope, step))?;
    Ok(Cursor::Step {
        step,
        visits_count: former.map_or(0, |former| former.visit),
        is_entered: true,
    })
}

/// The work with which a run begins, or continues when it was resumed.
pub(super) fn first_work(run: &LoadedRun) -> Work {
    match run.record.resumption.cursor {
        Some(_) => Work::Continue {
            scope: ScopeNumber::ROOT,
        },
        None => FIRST_WORK,
    }
}

/// Whether a run that ends, or has ended, may be resumed later.
pub(super) fn may_be_resumed(record: &RunRecord) -> bool {
    let is_retried = record.chain.is_some_and(|chain| chain.next.is_some());
    let is_undone = record.compensations.progress != CompensationProgress::None;
    record.resumption.cursor.is_some() && !is_retried && !is_undone
}

/// The step of the run itself at which it continues; `None` if it ends or begins.
pub(super) fn step_of(run: &LoadedRun) -> Option<StepIndex> {
    run.record.resumption.cursor.as_ref()?.at.next_step()
}

/// Makes a run continue at a step of its root scope, which it has visited before. False if it has not.
pub(super) fn place_at(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    step: StepIndex,
) -> Result<bool, StoreError> {
    let key = (run.number, ScopeNumber::ROOT, step);
    let former = turn.get::<StepResults>(&key)?;
    let is_stopped_here = step_of(run) == Some(step);
    match (&mut run.record.resumption.cursor, former) {
        (Some(cursor), _) if is_stopped_here => cursor.is_after_success = false,
        (_, Some(former)) => set(
            run,
            Cursor::Step {
                step,
                visits_count: former.visit,
                is_entered: true,
            },
        ),
        (_, None) => return Ok(false),
    }
    Ok(true)
}
