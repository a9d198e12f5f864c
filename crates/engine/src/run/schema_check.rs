//! Requests for checks of values against JSON Schemas, which libraries outside `apply` make (design rule 1).

use crate::effect::Effect;
use crate::tables::SchemaChecks;
use crate::turn::{ActivationRef, Turn};

/// Requests the check for which an activation waits.
pub(super) fn request(turn: &mut Turn<'_, '_>, at: ActivationRef) {
    let ActivationRef { run, activation } = at;
    turn.put::<SchemaChecks>(&(run, activation), ());
    turn.effect(Effect::CheckSchema { run, activation });
}
