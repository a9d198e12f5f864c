//! The verdict on the output of a run (W67).

use super::finish::{end, fix_end};
use super::output::{OUTPUT_INVALID, violation};
use super::{phase, run_output};
use crate::definition::BuiltInTerminal;
use crate::run::work_queue::WorkQueue;
use crate::tables::{Ending, SchemaVerdict};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// The run ends as it was decided if its output is valid; otherwise, it fails.
pub(super) fn decide(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    verdict: SchemaVerdict,
) -> TurnResult<()> {
    if !run_output::is_checking(run) {
        return Ok(());
    }
    match verdict {
        SchemaVerdict::Valid => {
            run.record
                .resumption
                .take(|resumption| &mut resumption.cursor);
            let next = phase::after_checking(turn, run)?;
            match next {
                Some(phase) => phase::enter(turn, queue, run, phase),
                None => end(turn, queue, run)?,
            }
            Ok(())
        }
        SchemaVerdict::Invalid { detail } => {
            run.record.fixed_end = None;
            let detail = Some(violation(&detail));
            let ending = Ending::of_engine(BuiltInTerminal::Failed, detail, OUTPUT_INVALID);
            fix_end(turn, queue, run, ending)
        }
    }
}
