//! Writes the runs of a turn at its end.

use super::index;
use crate::history;
use crate::subject::Subject;
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Writes the turn's runs: history, records and index rows.
pub(crate) fn write_all(turn: &mut Turn<'_, '_>) -> TurnResult<()> {
    let mut runs = turn.take_runs();
    for run in runs.iter_mut() {
        turn.with_subject(subject_of(run), |turn| {
            let events = run.end_changes();
            history::write(turn, run, events)
        })?;
    }
    for run in runs.iter_mut() {
        turn.with_subject(subject_of(run), |turn| index::update(turn, run))?;
    }
    for run in runs.into_runs() {
        turn.with_subject(subject_of(&run), |turn| run.write(turn));
    }
    Ok(())
}

/// What a panic in writing the run quarantines. A new child is rolled back with the turn, so it is its parent.
fn subject_of(run: &LoadedRun) -> Subject {
    let parent = run.record.parent.filter(|_| run.before().is_none());
    Subject::RunNumber(parent.map_or(run.number, |parent| parent.run))
}
