//! The input of a run step's target.

use super::render::{self, DataContext, MappingRefused};
use crate::definition::{CallRole, Template};
use crate::ids::ScopeNumber;
use crate::store::StoreError;
use crate::tables::{Activation, PayloadRef};
use crate::turn::{Draft, LoadedRun, Turn};

/// What the mapping of a step gives in a scope; without one, the input of the run.
pub(super) fn map(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    mapping: Option<&Template>,
) -> Result<Result<PayloadRef, MappingRefused>, StoreError> {
    match mapping {
        None => Ok(Ok(run.record.input)),
        Some(mapping) => render::stored(turn, run, DataContext::of(scope), mapping),
    }
}

/// Maps the input of the target again, for its next attempt or poll: the last one has written to the state (W66). That of a
/// fallback stays as it is.
pub(super) fn map_again(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Draft<Activation>,
) -> Result<Result<(), MappingRefused>, StoreError> {
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    let (CallRole::Target, Some(call)) = (active.call, step.call(active.call)) else {
        return Ok(Ok(()));
    };
    let mapped = map(turn, run, active.scope, call.input.as_ref())?;
    Ok(mapped.map(|input| active.input = input))
}
