//! The output of a run that has to satisfy a schema: it is checked before the run ends (W67).

use super::schema_check;
use crate::definition::Target;
use crate::store::StoreError;
use crate::tables::{Phase, RunRecord, SchemaChecks};
use crate::turn::{ActivationRef, LoadedRun, Turn};

/// What stands for the output of a run among the activations that wait for a check.
pub const CHECK: u64 = u64::MAX;

/// Whether the output of a run that ends at `terminal` has to satisfy a schema.
pub(super) fn is_checked_at(run: &LoadedRun, terminal: Target) -> bool {
    let definition = &run.definition.definition;
    definition.output_schema_at(terminal).is_some()
}

/// Whether the run waits for the check of its output.
pub(super) fn is_checking(run: &LoadedRun) -> bool {
    let end = run.record.fixed_end.as_ref();
    end.is_some_and(|end| end.phase == Phase::CheckingOutput)
}

/// Requests the check.
pub(super) fn request(turn: &mut Turn<'_, '_>, run: &LoadedRun) {
    let check = ActivationRef {
        run: run.number,
        activation: CHECK,
    };
    schema_check::request(turn, check);
}

/// Requests the check again, if the run waits for it and no verdict has arrived.
pub(super) fn restore(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> Result<(), StoreError> {
    let check = (run.number, CHECK);
    if is_checking(run) && turn.get::<SchemaChecks>(&check)?.is_some() {
        request(turn, run);
    }
    Ok(())
}

/// Which output of the run is checked: a run that is resumed has another one.
#[must_use]
pub(crate) fn attempt(run: &RunRecord) -> u32 {
    run.resumption.resumes_count + 1
}

/// Takes back the decision about the end of a run whose output is not checked yet, but has to be. Returns whether it was.
pub(super) fn retract_end(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> bool {
    let Some(end) = &run.record.fixed_end else {
        return false;
    };
    let is_open = match end.phase {
        Phase::Cancelling => is_checked_at(run, end.terminal),
        Phase::CheckingOutput => {
            turn.delete::<SchemaChecks>(&(run.number, CHECK));
            true
        }
        Phase::Compensating | Phase::OnError | Phase::OnCancel => false,
    };
    if is_open {
        run.record.fixed_end = None;
    }
    is_open
}
