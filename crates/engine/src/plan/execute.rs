//! Executing a plan: tries executors in order until one gives a result (W30–W34).

use super::cache::{self, Lookup};
use super::execution::Execution;
use super::executor_stats::{self, Gate};
use super::finish_attempt::{note_failure, pass_on};
use super::{end, order};
use crate::run::{self, WorkQueue};
use crate::tables::{Activation, ActivationState, PlanEvent, PlanState, PlanWait};
use crate::task::{self, LoadedTask};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// Begins an execution, or continues with a delayed attempt.
pub(crate) fn execute(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    active: Draft<Activation>,
) -> TurnResult<()> {
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
) -> TurnResult<()> {
    let invalidations_count = match cache::look_up(turn, &execution)? {
        Lookup::Found { key, output } => {
            execution.event(PlanEvent::CacheHit { key });
            end::finish_with_cached(turn, queue, execution, output);
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

/// Makes an attempt on the first executor that lets one through, starting with the current one. If none does, the plan
/// is exhausted.
pub(super) fn try_executors(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    mut state: PlanState,
) -> TurnResult<()> {
    state.wait = PlanWait::Executing;
    while let Some(index) = state.executor() {
        let executor = execution.executor(index).name.clone();
        let mut attempts_count = state.attempt - 1;
        match executor_stats::admit(turn, &execution, index)? {
            Gate::Open { is_probe } => {
                attempts_count = state.attempt;
                let event = PlanEvent::ExecutorStart {
                    executor,
                    attempt: attempts_count,
                    is_probe,
                };
                execution.event(event);
                let action = execution.executor(index).action.clone();
                match run::create_action_run(turn, execution.run, &execution.active, &action)? {
                    Ok(task) => return wait_for(turn, execution, state, task),
                    Err(target_result) => {
                        note_failure(turn, &mut execution, &mut state, &target_result)?
                    }
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

/// Waits for an attempt that has begun.
fn wait_for(
    turn: &mut Turn<'_, '_>,
    mut execution: Execution<'_>,
    mut state: PlanState,
    task: LoadedTask,
) -> TurnResult<()> {
    state.wait = PlanWait::Action(task.number);
    execution.open_call();
    let run = execution.put(ActivationState::Plan(Box::new(state)));
    task::make_ready(turn, Some(run), task)
}
