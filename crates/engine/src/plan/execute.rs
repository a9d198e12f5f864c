//! Executing a plan: from executor to executor until one answers or none is left (W30–W34).

use super::cache::{self, Lookup};
use super::execution::Execution;
use super::settle::{note_failure, pass_on};
use super::tally::{self, Gate};
use super::{end, order};
use crate::ids::ActionRunNumber;
use crate::run::{self, LoadedRun, WorkQueue};
use crate::tables::{Activation, ActivationState, PlanEvent, PlanState, PlanWait};
use crate::task;
use crate::turn::{Draft, Outcome, Turn};

/// Begins an execution, or goes on with the attempt that was put off.
pub(crate) fn execute(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    active: Draft<Activation>,
) -> Outcome<()> {
    let execution = Execution::new(run, active);
    match execution.plan_state() {
        Some(state) => try_executors(turn, queue, execution, state),
        None => begin(turn, queue, execution),
    }
}

fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
) -> Outcome<()> {
    let invalidations_count = match cache::look_up(turn, &execution)? {
        Lookup::Found { key, output } => {
            execution.event(PlanEvent::CacheHit { key });
            end::give(turn, queue, execution, output);
            return Ok(());
        }
        Lookup::Missed {
            invalidations_count,
        } => Some(invalidations_count),
        Lookup::Off => None,
    };
    let state = PlanState {
        order: order::choose(turn, &execution)?,
        position: 0,
        attempt: 1,
        started_at_ms: turn.now_ms(),
        failure: None,
        invalidations_count,
        wait: PlanWait::Executing,
    };
    try_executors(turn, queue, execution, state)
}

/// Makes an attempt on the first executor that lets one through, the current one first; without such
/// a one the plan is exhausted.
pub(super) fn try_executors(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    mut state: PlanState,
) -> Outcome<()> {
    state.wait = PlanWait::Executing;
    while let Some(index) = state.executor() {
        let executor = execution.executor(index).name.clone();
        let mut attempts_count = state.attempt - 1;
        match tally::admit(turn, &execution, index)? {
            Gate::Open { is_probe } => {
                attempts_count = state.attempt;
                let event = PlanEvent::ExecutorStart {
                    executor,
                    attempt: attempts_count,
                    is_probe,
                };
                execution.event(event);
                let action = execution.executor(index).action.clone();
                match run::open_action(turn, execution.run, &execution.active, &action)? {
                    Ok(action_run) => return wait_for(turn, execution, state, action_run),
                    Err(settled) => note_failure(turn, &mut execution, &mut state, &settled)?,
                }
            }
            Gate::Broken { until_ms } => {
                execution.event(PlanEvent::BreakerSkip { executor, until_ms });
            }
            Gate::Full { until_ms } => {
                execution.event(PlanEvent::RateLimited { executor, until_ms });
            }
        }
        if pass_on(turn, &mut execution, &mut state, attempts_count) {
            break;
        }
    }
    end::exhaust(turn, queue, execution, state.failure)
}

/// The attempt is under way.
fn wait_for(
    turn: &mut Turn<'_, '_>,
    execution: Execution<'_>,
    mut state: PlanState,
    action_run: ActionRunNumber,
) -> Outcome<()> {
    state.wait = PlanWait::Action(action_run);
    let run = execution.put(ActivationState::Plan(state));
    task::make_ready(turn, Some(run), action_run)
}
