//! The work list: what happens to runs within one turn.

use super::decide::InputVerdict;
use super::loaded::ActivationRef;
use super::{child, decide, enter, execute, finish, settle};
use crate::command::Subject;
use crate::definition::{BuiltInTerminal, StepIndex, Target};
use crate::ids::{OutcomeName, RunNumber};
use crate::limits::ADVANCE_STEPS_MAX;
use crate::tables::{DefinitionNumber, ParentLink, PayloadRef};
use crate::turn::{Outcome, Turn};
use std::collections::VecDeque;

/// One piece of work.
pub(crate) enum Work {
    /// A run enters a step.
    Enter { run: RunNumber, step: StepIndex },
    /// A run step's target is invoked, for the first time or again.
    Execute { run: RunNumber, activation: u32 },
    /// A child run is begun for a step; its input may still need a verdict (W4).
    BeginChild { run: RunNumber, activation: u32 },
    /// The verdict on a child's input came in (W4).
    DecideChild {
        run: RunNumber,
        activation: u32,
        definition: DefinitionNumber,
        verdict: InputVerdict,
    },
    /// An outcome came in for an activation.
    Settle {
        run: RunNumber,
        activation: u32,
        settled: Settled,
    },
    /// A child has ended while the run that waits for it was set aside.
    HearChild {
        run: RunNumber,
        activation: u32,
        child: RunNumber,
    },
    /// A run reaches a terminal.
    Finish {
        run: RunNumber,
        terminal: Target,
        detail: Option<String>,
    },
    /// A run is cancelled, by a caller or with its parent (W17, W18).
    Cancel {
        run: RunNumber,
        reason: Option<String>,
    },
}

impl Work {
    /// Whose work it is.
    fn run(&self) -> RunNumber {
        match self {
            Self::Enter { run, .. }
            | Self::Execute { run, .. }
            | Self::BeginChild { run, .. }
            | Self::DecideChild { run, .. }
            | Self::Settle { run, .. }
            | Self::HearChild { run, .. }
            | Self::Finish { run, .. }
            | Self::Cancel { run, .. } => *run,
        }
    }
}

/// What a step's target came back with.
pub(crate) struct Settled {
    /// The outcome.
    pub(crate) outcome: OutcomeName,
    /// The output, stored with the run.
    pub(crate) output: Option<PayloadRef>,
    /// What went wrong, in words, where the outcome does not say.
    pub(crate) reason: Option<String>,
    /// False for a failure that must skip the step's retries (A5, W12).
    pub(crate) is_retryable: bool,
}

/// The work that is left in this turn.
pub(crate) struct Progress {
    queue: VecDeque<Work>,
    steps_count: u32,
}

impl Progress {
    /// Adds a piece of work.
    pub(crate) fn push(&mut self, work: Work) {
        self.queue.push_back(work);
    }

    /// Counts a step that `run` enters, or that it tries again at once; false when the turn has
    /// taken as many as it may (W16): the run then ends. All runs of a turn share the count, which
    /// bounds the turn: a parent has fewer steps left by those that its children take in it.
    pub(crate) fn count_step(&mut self, run: RunNumber) -> bool {
        self.steps_count += 1;
        let is_within = self.steps_count <= ADVANCE_STEPS_MAX;
        if !is_within {
            self.push(Work::Finish {
                run,
                terminal: Target::BuiltIn(BuiltInTerminal::Failed),
                detail: Some("max step limit reached".to_owned()),
            });
        }
        is_within
    }
}

/// Does `work` and everything that follows from it, until all runs wait or have ended. Runs that
/// are set aside stay as they are (design rule 10).
pub(crate) fn advance(turn: &mut Turn<'_, '_>, work: Work) -> Outcome<()> {
    advance_counted(turn, work).map(drop)
}

/// As [`advance`]; returns the steps that were taken, for a turn that has more work to do.
pub(crate) fn advance_counted(turn: &mut Turn<'_, '_>, work: Work) -> Outcome<u32> {
    advance_all(turn, [work])
}

/// As [`advance_counted`], of several pieces of work.
pub(super) fn advance_all(
    turn: &mut Turn<'_, '_>,
    works: impl IntoIterator<Item = Work>,
) -> Outcome<u32> {
    let mut progress = Progress {
        queue: works.into_iter().collect(),
        steps_count: 0,
    };
    while let Some(work) = progress.queue.pop_front() {
        let run = work.run();
        if turn.is_quarantined(run) {
            continue;
        }
        turn.suspect(Subject::RunNumber(run));
        match work {
            Work::Enter { run, step } => enter::enter(turn, &mut progress, run, step)?,
            Work::Execute { run, activation } => {
                execute::execute(turn, &mut progress, ActivationRef { run, activation })?;
            }
            Work::BeginChild { run, activation } => {
                child::begin(turn, &mut progress, ActivationRef { run, activation })?;
            }
            Work::DecideChild {
                run,
                activation,
                definition,
                verdict,
            } => {
                let at = ActivationRef { run, activation };
                let decision = decide::Decision {
                    definition,
                    verdict,
                };
                decide::decide(turn, &mut progress, at, decision)?;
            }
            Work::Settle {
                run,
                activation,
                settled,
            } => {
                let at = ActivationRef { run, activation };
                settle::settle(turn, &mut progress, at, settled)?;
            }
            Work::HearChild {
                run,
                activation,
                child,
            } => {
                let link = ParentLink { run, activation };
                finish::tell_parent(turn, &mut progress, child, link)?;
            }
            Work::Finish {
                run,
                terminal,
                detail,
            } => {
                let ending = finish::Ending { terminal, detail };
                finish::finish(turn, &mut progress, run, ending)?;
            }
            Work::Cancel { run, reason } => finish::cancel(turn, &mut progress, run, reason)?,
        }
    }
    Ok(progress.steps_count)
}
