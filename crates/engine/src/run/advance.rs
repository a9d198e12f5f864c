//! The loop that advances runs: it takes work from the queue and calls its handler.

use super::work_queue::WorkQueue;
use super::{
    branches, cancel_scope, child, compensation, concurrency, continuation, continue_run, decide,
    decide_run_output, delayed_entry, enter, execute, finish, finish_step, for_each, kept_signals,
    on_cancel, output, phase, resumable, scope, state, step_timeout, stopped,
};
use crate::ids::RunNumber;
use crate::subject::Subject;
use crate::tables::Work;
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};

/// Does `work` and all work that follows from it, until all runs wait or have ended or the turn has used up its budget;
/// a continuation does the rest in a later entry. Quarantined runs are unchanged (design rule 10).
pub(crate) fn advance(turn: &mut Turn<'_, '_>, run: RunNumber, work: Work) -> TurnResult<()> {
    advance_all(turn, run, [work])
}

/// Like [`advance`], for an active step that got what it waited for from outside.
pub(crate) fn advance_after_wait(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    work: Work,
) -> TurnResult<()> {
    if !turn.is_quarantined(at.run)
        && let Some(mut run) = turn.load_run_if_kept(at.run)?
    {
        let active = run.activation(turn, at.activation)?;
        if let Some(scope) = active.map(|active| active.scope) {
            run.end_wait(scope);
        }
        turn.put_back_run(run);
    }
    advance(turn, at.run, work)
}

/// Like [`advance`], for several pieces of work on one run.
pub(super) fn advance_all(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    works: impl IntoIterator<Item = Work>,
) -> TurnResult<()> {
    let works = works.into_iter().map(|work| (run, work)).collect();
    run_all(turn, WorkQueue { works }, None)
}

/// Resumes a run's deferred work.
pub(super) fn resume(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    works: impl IntoIterator<Item = Work>,
) -> TurnResult<()> {
    let works = works.into_iter().map(|work| (run, work)).collect();
    run_all(turn, WorkQueue { works }, Some(run))
}

fn run_all(
    turn: &mut Turn<'_, '_>,
    mut queue: WorkQueue,
    continued: Option<RunNumber>,
) -> TurnResult<()> {
    while let Some((number, work)) = queue.works.pop_front() {
        if turn.is_quarantined(number) {
            continue;
        }
        turn.attribute_to(Subject::RunNumber(number));
        let Some(mut run) = turn.load_run_if_kept(number)? else {
            continue;
        };
        let is_resumed = continued == Some(number);
        let mut next = Some(work);
        // Most work leads to more work on the same run: it stays loaded.
        while let Some(work) = next {
            turn.attribute_to(Subject::RunNumber(number));
            do_or_defer(turn, &mut queue, &mut run, NextWork { work, is_resumed })?;
            turn.count_events(&mut run);
            let following = queue.works.pop_front_if(|(of, _)| *of == number);
            next = following.map(|(_, work)| work);
        }
        turn.put_back_run(run);
    }
    Ok(())
}

/// The next piece of work on a run.
struct NextWork {
    work: Work,
    /// Whether the turn resumes the run's deferred work.
    is_resumed: bool,
}

/// Does a piece of work, or defers it if the turn has used up its budget.
fn do_or_defer(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    next: NextWork,
) -> TurnResult<()> {
    let NextWork { work, is_resumed } = next;
    // Work on a run is done in order, but what ends the run ends what is deferred, too.
    let is_ordered = !matches!(
        work,
        Work::Cancel { .. } | Work::Force { .. } | Work::TimeOut
    );
    let is_behind = run.record.continuation.is_some() && !is_resumed && is_ordered;
    if is_behind || turn.is_spent() {
        match is_resumed {
            true => continuation::defer_again(turn, run, work),
            false => continuation::defer(turn, run, work),
        }
        return Ok(());
    }
    carry_out(turn, queue, run, work)
}

fn carry_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    work: Work,
) -> TurnResult<()> {
    match work {
        Work::Enter { scope, step } => enter::enter(turn, queue, run, enter::Entry { scope, step }),
        Work::Continue { scope } => continue_run::continue_scope(turn, queue, run, scope),
        Work::EnterDelayed { activation } => delayed_entry::enter(turn, queue, run, activation),
        Work::Execute { activation } => execute::execute(turn, queue, run, activation),
        Work::BeginChild { activation } => child::begin(turn, queue, run, activation),
        Work::DecideChild(checked) => decide::decide_child(turn, queue, run, checked),
        Work::DecideRunOutput { verdict } => decide_run_output::decide(turn, queue, run, verdict),
        Work::DecideOutput {
            activation,
            output,
            verdict,
        } => {
            let checked = output::CheckedOutput {
                activation,
                output,
                verdict,
            };
            output::decide(turn, queue, run, checked)
        }
        Work::FinishStep {
            activation,
            target_result,
        } => {
            let end = finish_step::StepEnd {
                activation,
                target_result,
            };
            stopped::finish(turn, queue, run, end)
        }
        Work::ChildBegan { activation, child } => child::note_began(turn, run, activation, child),
        Work::TakeKeys => concurrency::take(turn, queue, run),
        Work::ReplaceHolders(next) => concurrency::replace(turn, queue, run, next),
        Work::ChildEnded { activation, child } => {
            let work = finish::note_child_end(turn, run, activation, child);
            work.map(|work| queue.push_all(run.number, work))
        }
        Work::SplitItems(place) => for_each::split(turn, queue, run, place),
        Work::BeginIteration { activation } => for_each::begin(turn, queue, run, activation),
        Work::ForgetItems(former) => for_each::forget(turn, queue, run, former),
        Work::BeginBranch(place) => branches::begin(turn, queue, run, place),
        Work::EndScope(end) => scope::end(turn, queue, run, end),
        Work::BeginOnCancel { activation } => on_cancel::begin(turn, queue, run, activation),
        Work::CancelledStepEnded { scope } => cancel_scope::note_end(turn, queue, run, scope),
        Work::CancelScope { scope } => cancel_scope::cancel(turn, queue, run, scope),
        Work::ForgetBranches(former) => resumable::forget_branches(turn, queue, run, former),
        Work::ForgetWrites => Ok(state::forget_writes(turn, queue, run)?),
        Work::SettleSignals(attempt) => kept_signals::settle(turn, queue, run, attempt),
        Work::Finish(ending) => finish::finish(turn, queue, run, ending),
        Work::Cancel { reason } => finish::cancel(turn, queue, run, reason),
        Work::Undo { owner } => compensation::next(turn, queue, run, owner),
        Work::ConcludeUndone { activation } => {
            finish_step::conclude_undone(turn, queue, run, activation)
        }
        Work::NextPhase => Ok(phase::next(turn, queue, run)?),
        Work::EndRun => finish::end(turn, queue, run),
        Work::Force { reason } => finish::force(turn, queue, run, reason),
        Work::TimeOut => finish::time_out(turn, queue, run),
        Work::TimeOutStep(overdue) => step_timeout::time_out(turn, queue, run, overdue),
    }
}
