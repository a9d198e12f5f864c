//! Finishing a step with its target result: poll, retry or leave (W11–W14).

use super::enter::Entry;
use super::failure::{self, Exit, is_failure};
use super::fallback::{self, FailedCall};
use super::kept_signals::{self, EndedAttempt};
use super::outcome::{Destination, destination, name};
use super::resumable::{self, LeftStep};
use super::retry::{self, Retry};
use super::scope::branches_of;
use super::step_timer::wake_timer;
use super::{
    branches, compensation, delayed_entry, linked_attempts, on_cancel, output, phase, state,
    state_patch, step_input, timeout_timers,
};
use crate::definition::{CallRole, PollPolicy, Step};
use crate::ids::ScopeNumber;
use crate::plan;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Dropped, EventKind, PayloadRef, StepResult, StepResults,
    TargetResult, UndoOwner, Undoing, Work,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// The end of an active step's attempt.
pub(super) struct StepEnd {
    pub(super) activation: u64,
    pub(super) target_result: TargetResult,
}

/// Finishes an active step with its target result. A result from a source that the step does not wait for has no
/// effect.
pub(super) fn finish_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    end: StepEnd,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, end.activation)? else {
        return Ok(());
    };
    let mut target_result = end.target_result;
    if active.state.awaits() != target_result.from || active.ending.undoing.is_some() {
        run.put_back(active);
        return Ok(());
    }
    if let ActivationState::Plan(_) = active.state {
        // What came in ends an attempt on an executor; the plan settles the step when it ends.
        let execution = plan::Execution::new(run, active);
        return plan::finish_attempt(turn, queue, execution, target_result);
    }
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    if let (Some(poll), name::PENDING) = (step.poll(active.call), target_result.outcome.as_str()) {
        let polls = active.polls_count;
        let patched = state_patch::write_and_note(turn, run, &active, &target_result)?;
        if let Err(not_written) = patched {
            target_result = not_written.ends_attempt(turn, run, &target_result);
        } else if polls >= poll.max_attempts {
            run.note(&active, EventKind::PollExhausted { polls });
            target_result.outcome = name::of(name::TIMEOUT);
            target_result.output = None;
            target_result.not_before_ms = None;
            target_result.reason = Some(format!("still pending after poll {polls}"));
            target_result.state_patch = None;
        } else if let Err(refused) = map_again(turn, run, &mut active, &target_result)? {
            target_result = refused;
        } else {
            let poll = NextPoll {
                active,
                policy: poll,
                not_before_ms: target_result.not_before_ms,
            };
            schedule_poll(turn, run, poll);
            return Ok(());
        }
    }
    timeout_timers::stop_attempt(turn, run.at(&active), &mut active);
    let attempt = Attempt {
        active,
        target_result,
        output: None,
    };
    end_call(turn, queue, run, attempt)
}

/// Ends a call, or an attempt at a step that makes none. What it has done can be undone from here on.
pub(super) fn end_call(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut attempt: Attempt,
) -> TurnResult<()> {
    if attempt.active.call.is_after_visit() {
        return end_call_after_visit(turn, queue, run, attempt);
    }
    compensation::enter(turn, run, &mut attempt.active, &attempt.target_result)?;
    output::conclude_with_output(turn, queue, run, attempt)
}

/// Ends a call that is made after a visit has ended: it is tried again, or left, and the work follows that waited for
/// it.
fn end_call_after_visit(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    attempt: Attempt,
) -> TurnResult<()> {
    let Attempt {
        active,
        mut target_result,
        ..
    } = attempt;
    if let Some(due_ms) = retry::due_ms(turn, run, &active, &mut target_result)? {
        retry::retry(turn, queue, run, Retry { active, due_ms });
        return Ok(());
    }
    let next = match active.call {
        CallRole::OnCancel => Some(on_cancel::conclude(turn, run, &active, &target_result)?),
        _ => compensation::conclude(turn, run, &active, &target_result)?,
    };
    timeout_timers::clear(turn, run.at(&active), &active);
    run.leave(&active);
    run.record.left_count += 1;
    if let Some(next) = next {
        queue.push(run.number, next);
    }
    Ok(())
}

/// Concludes a step whose blocks were undone first.
pub(super) fn conclude_undone(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    // A resume undoes the rest for one that was cancelled.
    let is_cancelled = active.ending.cancelled_with.is_some();
    let Some(undoing) = active.ending.undoing.take_if(|_| !is_cancelled) else {
        run.put_back(active);
        return Ok(());
    };
    let attempt = Attempt {
        active,
        target_result: undoing.target_result,
        output: None,
    };
    let now_ms = turn.now_ms();
    let retry_due_ms = undoing.retry_due_ms.map(|due_ms| due_ms.max(now_ms));
    retry_or_leave(
        turn,
        queue,
        run,
        Concluded {
            attempt,
            undone: Some(undoing.dropped),
            retry_due_ms,
        },
    )
}

/// An attempt at a step that has ended.
pub(super) struct Attempt {
    pub(super) active: Draft<Activation>,
    /// What its target gave, or why it failed.
    pub(super) target_result: TargetResult,
    /// The output of the step, if it is not that of the target (W67).
    pub(super) output: Option<Option<PayloadRef>>,
}

/// Tries the step again, or leaves it. What is dropped with that is undone first (W82a).
pub(super) fn conclude(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut attempt: Attempt,
) -> TurnResult<()> {
    let Attempt {
        active,
        target_result,
        output,
    } = &mut attempt;
    if let Err(not_written) = state_patch::check(turn, run, active, target_result)? {
        *target_result = not_written.ends_attempt(turn, run, target_result);
        *output = None;
    }
    let retry_due_ms = retry::due_ms(turn, run, active, target_result)?;
    let is_retried = retry_due_ms.is_some();
    if let Some(dropped) = compensation::dropped_by(run, active, target_result, is_retried)
        && compensation::is_due(turn, run, active, dropped)?
    {
        let Attempt {
            mut active,
            target_result,
            ..
        } = attempt;
        let owner = UndoOwner::Step(active.number);
        active.ending.undoing = Some(Undoing {
            dropped,
            target_result,
            retry_due_ms,
        });
        run.put_back(active);
        queue.push(run.number, Work::Undo { owner });
        return Ok(());
    }
    retry_or_leave(
        turn,
        queue,
        run,
        Concluded {
            attempt,
            undone: None,
            retry_due_ms,
        },
    )
}

/// An attempt about which is decided whether another one follows.
struct Concluded {
    attempt: Attempt,
    /// Which of its blocks were undone, if any.
    undone: Option<Dropped>,
    /// When the step is tried again, in milliseconds; `None` if it is left.
    retry_due_ms: Option<u64>,
}

/// Maps the input again for what follows an attempt that has patched the state; the error is what the step ends with if it
/// cannot be mapped.
fn map_again(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Draft<Activation>,
    target_result: &TargetResult,
) -> Result<Result<(), TargetResult>, StoreError> {
    if !state_patch::is_patched(run, active, target_result) {
        return Ok(Ok(()));
    }
    let mapped = step_input::map_again(turn, run, active)?;
    Ok(mapped.map_err(|refused| refused.ends_call(turn, run)))
}

/// Writes what an attempt has patched that is followed by another one, and maps the input of that one; the error is what the
/// step ends with if it cannot.
fn keep_patch(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Draft<Activation>,
    target_result: &TargetResult,
) -> Result<Result<(), TargetResult>, StoreError> {
    match state_patch::write_and_note(turn, run, active, target_result)? {
        Ok(()) => map_again(turn, run, active, target_result),
        Err(not_written) => Ok(Err(not_written.ends_step(turn, run))),
    }
}

/// Tries the step again, or leaves it.
fn retry_or_leave(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    concluded: Concluded,
) -> TurnResult<()> {
    let Concluded {
        attempt,
        undone,
        mut retry_due_ms,
    } = concluded;
    let Attempt {
        mut active,
        mut target_result,
        output,
    } = attempt;
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    if retry_due_ms.is_some()
        && let Err(refused) = keep_patch(turn, run, &mut active, &target_result)?
    {
        target_result = refused;
        retry_due_ms = None;
    }
    if let Some(due_ms) = retry_due_ms {
        let (of, ended) = (active.step, attempt_of_block(run, &active, true));
        branches::drop_writes(turn, run, &active)?;
        branches::forget_results(turn, run, &active)?;
        retry::retry(turn, queue, run, Retry { active, due_ms });
        if let Some(ended) = ended {
            let former = branches_of(run, of, ended.scope);
            queue.push(run.number, Work::ForgetBranches(former));
            kept_signals::settle_later(turn, queue, run, ended)?;
        }
        return Ok(());
    }
    if fallback::applies(&definition.definition, &active, &target_result) {
        // The fallback sees what the step keeps of the failed attempt.
        if let Err(not_written) = state_patch::write_and_note(turn, run, &active, &target_result)? {
            target_result = not_written.ends_step(turn, run);
        }
        let failed = FailedCall {
            active,
            target_result,
        };
        return fallback::invoke(turn, queue, run, failed);
    }
    branches::join_block(turn, run, &active, &mut target_result)?;
    match (
        state_patch::write_last(turn, run, &active, &target_result)?,
        output,
    ) {
        (Ok(()), Some(output)) => target_result.output = output,
        (Ok(()), None) => {}
        (Err(not_written), _) => target_result = not_written.ends_step(turn, run),
    }
    let destination = destination(&definition.definition, step, &target_result.outcome);
    let has_failed = is_failure(&target_result.outcome);
    let left = Left {
        active: &active,
        target_result,
        destination,
    };
    exit_step(turn, queue, run, left)?;
    let left = LeftStep {
        active: &active,
        has_failed,
        undone,
    };
    resumable::leave(turn, queue, run, &left)?;
    if let Some(ended) = attempt_of_block(run, &active, false) {
        kept_signals::settle_later(turn, queue, run, ended)?;
    }
    Ok(())
}

/// The attempt at a block that has ended, if the step has one that may be tried again.
pub(super) fn attempt_of_block(
    run: &LoadedRun,
    active: &Activation,
    is_retried: bool,
) -> Option<EndedAttempt> {
    let definition = &run.definition.definition;
    let block = active.state.branches();
    let block = block.filter(|_| definition.retry(active.step, active.call).is_some())?;
    Some(EndedAttempt {
        scope: block.first_scope,
        parent: active.scope,
        is_retried,
    })
}

/// How a step is left.
pub(super) struct Left<'a> {
    pub(super) active: &'a Activation,
    pub(super) target_result: TargetResult,
    /// Where it leads; `None` if nothing says so (W11).
    pub(super) destination: Option<Destination>,
}

/// Leaves a step, and queues the work that follows from where it leads.
pub(super) fn exit_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    left: Left<'_>,
) -> TurnResult<()> {
    let (active, mut target_result) = (left.active, left.target_result);
    failure::complete_output(turn, run, &mut target_result);
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    let exit = Exit {
        definition: &definition.definition,
        scope: active.scope,
        step,
        index: active.step,
        target_result: &target_result,
        cause: failure::cause_in(turn, &target_result)?,
    };
    let work = match left.destination {
        _ if definition.definition.is_handler(active.step) => {
            phase::end_of_handler(run, active, &exit)
        }
        _ if retries_run(run, step, &target_result) => exit.retry_run(),
        Some(Destination::Target(target)) => {
            let reason = exit.end_reason(turn, run, target)?;
            exit.follow(target, reason)
        }
        Some(Destination::End(outcome)) => exit.end_block(outcome),
        None => exit.without_transition(failure::no_transition(step, &target_result)),
    };
    let not_before_ms = target_result.not_before_ms;
    leave(turn, run, active, target_result)?;
    match (work, not_before_ms) {
        (Work::Enter { scope, step }, Some(due_ms)) if due_ms > turn.now_ms() => Ok(
            delayed_entry::schedule(turn, run, Entry { scope, step }, due_ms)?,
        ),
        (work, _) => {
            queue.push(run.number, work);
            Ok(())
        }
    }
}

/// Whether the step asks for another attempt at the run (W77); in a handler it cannot.
fn retries_run(run: &LoadedRun, step: &Step, target_result: &TargetResult) -> bool {
    let is_asked = linked_attempts::asks(step, &target_result.outcome);
    let retry = run.definition.definition.retry_run;
    is_asked && retry.is_some() && run.record.fixed_end.is_none()
}

/// A poll that follows the outcome `pending`.
struct NextPoll<'p> {
    active: Draft<Activation>,
    policy: &'p PollPolicy,
    /// The time that the target gave for it, in milliseconds (W74).
    not_before_ms: Option<u64>,
}

/// The first poll comes after `initialDelay`, the next ones after base×f(0), base×f(1) … (W14), unless the target gives the
/// time.
fn schedule_poll(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, poll: NextPoll<'_>) {
    let NextPoll {
        mut active,
        policy,
        not_before_ms,
    } = poll;
    let random = turn.random();
    let now_ms = turn.now_ms();
    let due_ms = not_before_ms.unwrap_or_else(|| {
        let delay_ms = match active.polls_count.checked_sub(1) {
            None => policy.initial_delay_ms,
            Some(k) => policy.backoff.delay_ms(k, random),
        };
        now_ms.saturating_add(delay_ms)
    });
    // The result may have come in an earlier entry.
    let due_ms = due_ms.max(now_ms);
    active.polls_count += 1;
    let kind = EventKind::PollScheduled {
        poll: active.polls_count,
        due_ms,
    };
    run.note(&active, kind);
    turn.set_timer(wake_timer(run.at(&active), due_ms));
    active.state = ActivationState::Poll { due_ms };
    run.put_back(active);
}

/// The run leaves the step, and notes what it ended with.
pub(super) fn leave(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: TargetResult,
) -> Result<(), StoreError> {
    if run.record.scopes.has_unrecorded_writes && active.scope == ScopeNumber::ROOT {
        state::note_full(turn, run)?;
    }
    if let Some(output) = target_result.output {
        let event = run.next_event();
        run.hold_payload(turn, output, event)?;
    }
    let kind = EventKind::StepCompleted {
        outcome: target_result.outcome.clone(),
        output: target_result.output,
    };
    run.note(active, kind);
    timeout_timers::clear(turn, run.at(active), active);
    run.leave(active);
    run.record.left_count += 1;
    if run.definition.definition.step(active.step).has_output() {
        run.progress(active.scope).last_left = Some(active.step);
    }
    let branches = active.state.branches();
    let result = StepResult {
        outcome: target_result.outcome,
        output: target_result.output,
        visit: active.visit,
        first_scope: branches.map(|branches| branches.first_scope),
        attempts: active.attempts_count(),
        started_at_ms: active.started_at_ms,
        completed_at_ms: turn.now_ms(),
        order: run.record.left_count,
    };
    turn.put::<StepResults>(&(run.number, active.scope, active.step), result);
    Ok(())
}
