//! Steps that a scope visits often (W78).

use crate::definition::{Definition, StepIndex};
use crate::tables::{Activation, EventKind, RunRecord};
use crate::turn::LoadedRun;

/// Warns, once in a run, of a step that a scope has visited often.
pub(super) fn note_visit(run: &mut LoadedRun, active: &Activation) {
    let visits = active.visit;
    let is_often = visits == run.definition.definition.loop_warn_after;
    if is_often && run.record.looping_step.is_none() {
        run.note(active, EventKind::LoopWarning { visits });
        run.record.looping_step = Some(active.step);
    }
}

/// What the detail of a run says of a step that was visited often.
pub(crate) fn describe(definition: &Definition, run: &RunRecord) -> Option<String> {
    let text = |step: StepIndex| {
        let (step, visits) = (&definition.step(step).name, definition.loop_warn_after);
        format!("step \"{step}\" was visited {visits} times or more")
    };
    run.looping_step.map(text)
}
