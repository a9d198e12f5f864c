//! Retries of runs.

use super::player::{Player, start};
use crate::invariants::{read, rows};
use flotilla_engine::ids::{RunId, ScopeNumber};
use flotilla_engine::rows::{Definitions, RunStatus, Runs, StepResults};
use flotilla_engine::{Body, RetryFrom, RetryRun, StartRun};

impl Player {
    /// A retry of a run that has ended from one of its steps, if a number picks one; otherwise, of any run from the beginning.
    pub(super) fn retry(&self, run_id: &RunId, workflow: u8, from: Option<u8>) -> Body {
        let from = from.and_then(|number| self.retry_from(number));
        from.unwrap_or_else(|| self.retry_from_beginning(run_id, workflow))
    }

    fn retry_from_beginning(&self, run_id: &RunId, workflow: u8) -> Body {
        Body::RetryRun(RetryRun {
            run_id: run_id.clone(),
            run: self.number_of(run_id),
            from: None,
            start: start(workflow, None, None),
        })
    }

    /// A retry of a run that has ended, from one of its steps; `None` if there is none.
    fn retry_from(&self, number: u8) -> Option<Body> {
        let runs = rows::<Runs>(&self.store, &()).into_iter();
        let ended: Vec<_> = runs
            .filter(|(_, run)| matches!(run.status, RunStatus::Ended(_)))
            .filter(|(_, run)| run.left_count > 1 || number.is_multiple_of(4))
            .collect();
        let number = usize::from(number);
        let (run, record) = ended.get(number % ended.len().max(1))?;
        let definition = read::<Definitions>(&self.store, &record.definition)?.definition;
        let results = rows::<StepResults>(&self.store, &(*run, ScopeNumber::ROOT));
        let from_last = number / 4 % results.len().max(1);
        let ((_, _, step), _) = results.iter().rev().nth(from_last)?;
        Some(Body::RetryRun(RetryRun {
            run_id: record.id.clone(),
            run: *run,
            from: Some(RetryFrom {
                step: definition.step(*step).name.clone(),
                is_forced: number.is_multiple_of(2),
            }),
            start: StartRun {
                workflow: definition.name.clone(),
                ..start(0, None, None)
            },
        }))
    }
}
