//! The work queue of a turn.

use crate::definition::{BuiltInTerminal, Target};
use crate::ids::RunNumber;
use crate::limits::RUN_STEPS_MAX;
use crate::tables::Work;
use crate::turn::{LoadedRun, Turn};
use std::collections::VecDeque;

/// The work on runs that remains in this turn.
#[derive(Default)]
pub(crate) struct WorkQueue {
    pub(super) works: VecDeque<(RunNumber, Work)>,
}

impl WorkQueue {
    /// Adds a piece of work on `run`.
    pub(crate) fn push(&mut self, run: RunNumber, work: Work) {
        self.works.push_back((run, work));
    }

    /// Counts a step that the run enters or retries immediately. False if the run has reached its limit of steps
    /// without a wait (W16): it then ends.
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
