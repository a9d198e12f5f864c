//! Writes the runs of a turn at its end.

use super::index;
use crate::history;
use crate::turn::{Turn, TurnResult};

/// Writes the turn's runs: history, records and index rows.
pub(crate) fn write_all(turn: &mut Turn<'_, '_>) -> TurnResult<()> {
    let mut runs = turn.take_runs();
    for run in &mut runs {
        let events = run.end_changes();
        history::write(turn, run, events)?;
    }
    for run in &runs {
        index::update(turn, run.number, run.before(), &run.record)?;
    }
    for run in runs {
        run.write(turn);
    }
    Ok(())
}
