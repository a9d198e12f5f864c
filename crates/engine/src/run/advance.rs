//! The work list: what happens to runs within one turn.

use super::loaded::{LoadedRun, load_if_kept, put_back};
use super::{child, continuation, decide, enter, execute, finish, settle};
use crate::command::Subject;
use crate::definition::{BuiltInTerminal, Target};
use crate::ids::RunNumber;
use crate::limits::RUN_STEPS_MAX;
use crate::tables::Work;
use crate::turn::{Outcome, Turn};
use std::collections::VecDeque;

/// The work that is left in this turn.
#[derive(Default)]
pub(crate) struct WorkQueue {
    works: VecDeque<(RunNumber, Work)>,
}

impl WorkQueue {
    /// Adds a piece of work on `run`.
    pub(crate) fn push(&mut self, run: RunNumber, work: Work) {
        self.works.push_back((run, work));
    }

    /// Counts a step that the run enters, or that it tries again at once. False when the run has taken as many as it
    /// may without a wait (W16): it then ends.
    pub(crate) fn count_step(&mut self, turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> bool {
        turn.spend_step();
        run.record.steps_since_wait += 1;
        let is_within = run.record.steps_since_wait <= RUN_STEPS_MAX;
        if !is_within {
            let work = Work::Finish {
                terminal: Target::BuiltIn(BuiltInTerminal::Failed),
                detail: Some("max step limit reached".to_owned()),
            };
            self.push(run.number, work);
        }
        is_within
    }
}

/// Does `work` and everything that follows from it, until all runs wait or have ended, or until the turn has reached
/// its budget: a continuation does the rest in a later entry. Runs that are set aside stay as they are (design rule 10).
pub(crate) fn advance(turn: &mut Turn<'_, '_>, run: RunNumber, work: Work) -> Outcome<()> {
    advance_all(turn, run, [work])
}

/// As [`advance`], where what the run waited for came from outside.
pub(crate) fn advance_after_wait(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    work: Work,
) -> Outcome<()> {
    if !turn.is_quarantined(number)
        && let Some(mut run) = load_if_kept(turn, number)?
    {
        run.end_wait();
        put_back(turn, run);
    }
    advance(turn, number, work)
}

/// As [`advance`], with several pieces of work on one run.
pub(super) fn advance_all(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    works: impl IntoIterator<Item = Work>,
) -> Outcome<()> {
    let works = works.into_iter().map(|work| (run, work)).collect();
    carry_out_all(turn, WorkQueue { works }, None)
}

/// Takes up the work of a run that was put off.
pub(super) fn go_on(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    works: impl IntoIterator<Item = Work>,
) -> Outcome<()> {
    let works = works.into_iter().map(|work| (run, work)).collect();
    carry_out_all(turn, WorkQueue { works }, Some(run))
}

fn carry_out_all(
    turn: &mut Turn<'_, '_>,
    mut queue: WorkQueue,
    continued: Option<RunNumber>,
) -> Outcome<()> {
    while let Some((number, work)) = queue.works.pop_front() {
        if turn.is_quarantined(number) {
            continue;
        }
        turn.suspect(Subject::RunNumber(number));
        let Some(mut run) = load_if_kept(turn, number)? else {
            continue;
        };
        // Work on a run is done in its order.
        let is_behind = run.record.continuation.is_some() && continued != Some(number);
        if is_behind || turn.is_spent() {
            continuation::put_off(turn, &mut run, work);
        } else {
            carry_out(turn, &mut queue, &mut run, work)?;
        }
        put_back(turn, run);
    }
    Ok(())
}

fn carry_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    work: Work,
) -> Outcome<()> {
    match work {
        Work::Enter { step } => enter::enter(turn, queue, run, step),
        Work::Execute { activation } => execute::execute(turn, queue, run, activation),
        Work::BeginChild { activation } => child::begin(turn, queue, run, activation),
        Work::DecideChild {
            activation,
            definition,
            verdict,
        } => {
            let decision = decide::Decision {
                activation,
                definition,
                verdict,
            };
            decide::decide(turn, queue, run, decision)
        }
        Work::Settle {
            activation,
            settled,
        } => settle::settle(turn, queue, run, (activation, settled)),
        Work::ChildEnded { activation, child } => {
            finish::hear_child(turn, queue, run, (activation, child))
        }
        Work::Finish { terminal, detail } => {
            let ending = finish::Ending { terminal, detail };
            finish::finish(turn, queue, run, ending)
        }
        Work::Cancel { reason } => finish::cancel(turn, queue, run, reason),
    }
}
