//! The work queue of a turn.

use crate::definition::BuiltInTerminal;
use crate::ids::{RunNumber, ScopeNumber};
use crate::limits::{RUN_STEPS_MAX, UNWAITED_STEPS_MAX};
use crate::tables::{Ending, Work};
use crate::turn::{LoadedRun, Turn};
use std::collections::VecDeque;

/// The work on runs that remains in this turn.
#[derive(Default)]
pub(crate) struct WorkQueue {
    pub(super) works: VecDeque<(RunNumber, Work)>,
}

impl WorkQueue {
    /// Adds a piece of work on `run`, to be done next: what follows from a piece of work is done before what was
    /// waiting, so a branch goes as far as it can before the next one begins (W56).
    pub(crate) fn push(&mut self, run: RunNumber, work: Work) {
        self.works.push_front((run, work));
    }

    /// Like [`Self::push`], for any number of pieces of work: the last one is done first.
    pub(super) fn push_all(&mut self, run: RunNumber, works: impl IntoIterator<Item = Work>) {
        works.into_iter().for_each(|work| self.push(run, work));
    }

    /// Counts a step that a scope of the run enters or retries immediately. False if the scope or the run has reached its
    /// limit of steps without a wait (W16): the run then ends.
    pub(crate) fn count_step(
        &mut self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        scope: ScopeNumber,
    ) -> bool {
        turn.spend_step();
        let progress = run.progress(scope);
        progress.steps_since_wait += 1;
        let steps_since_wait = progress.steps_since_wait;
        run.record.unwaited_steps_count += 1;
        let exceeded = if steps_since_wait > RUN_STEPS_MAX {
            format!("{RUN_STEPS_MAX} steps without a wait")
        } else if run.record.unwaited_steps_count > UNWAITED_STEPS_MAX {
            format!("{UNWAITED_STEPS_MAX} steps of all scopes without a wait")
        } else {
            return true;
        };
        self.push_step_limit(run.number, scope, &exceeded);
        false
    }

    /// Counts a step that a scope enters. False if the scope has entered as many as the definition allows (W78): the run
    /// then ends.
    pub(super) fn count_entry(&mut self, run: &mut LoadedRun, scope: ScopeNumber) -> bool {
        let max_steps = run.definition.definition.max_steps;
        let progress = run.progress(scope);
        progress.entered_count = progress.entered_count.saturating_add(1);
        let Some(exceeded) = max_steps.filter(|max_steps| progress.entered_count > *max_steps)
        else {
            return true;
        };
        self.push_step_limit(run.number, scope, &format!("maxSteps is {exceeded}"));
        false
    }

    /// Ends a run of which a scope has taken too many steps. `limit` says how many were allowed.
    fn push_step_limit(&mut self, run: RunNumber, scope: ScopeNumber, limit: &str) {
        let detail = Some(format!("max step limit reached: {limit}"));
        let ending = Ending::of_engine(BuiltInTerminal::Failed, detail, "max_steps");
        self.push(run, Work::Finish(Ending { scope, ..ending }));
    }
}
