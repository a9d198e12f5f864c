//! The results of steps, and the items, that a scope sees (W53, W57).

use crate::definition::{BlockIndex, Definition, StepIndex};
use crate::ids::{RunNumber, ScopeNumber};
use crate::store::StoreError;
use crate::tables::{StepResult, StepResults};
use crate::turn::{LoadedRun, Turn};
use std::sync::Arc;

/// The result of the last visit to `step`, as it is seen from an open scope: in the scope itself, in one around it, or
/// in a branch of one of these that has ended.
pub(super) fn result_of(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    from: ScopeNumber,
    step: StepIndex,
) -> Result<Option<Arc<StepResult>>, StoreError> {
    let record = run.definition.clone();
    let definition = &record.definition;
    let block = definition.step(step).block;
    let mut scope = ScopeNumber::ROOT;
    if block != BlockIndex::ROOT {
        let mut way = way_to(definition, block);
        scope = climb(turn, run, from, &mut way)?;
        for inner in way.into_iter().rev() {
            let opened = turn.get::<StepResults>(&(run.number, scope, inner.opener))?;
            let Some(first) = opened.and_then(|opened| opened.first_scope) else {
                return Ok(None);
            };
            let position = definition.branch_position(inner.opener, inner.block);
            scope = ScopeNumber(first.0 + position as u64);
        }
    }
    turn.get::<StepResults>(&(run.number, scope, step))
}

/// The key of the item of the innermost iteration of `step` around a scope.
pub(super) fn iteration(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    from: ScopeNumber,
    step: StepIndex,
) -> Result<Option<(RunNumber, u64, u32)>, StoreError> {
    let record = run.definition.clone();
    let mut number = from;
    while let Some(scope) = run.scope(turn, number)? {
        if record.definition.block(scope.block).opener == Some(step) {
            let (opener, index) = (scope.opener, scope.position);
            return Ok(Some((run.number, opener, index)));
        }
        number = scope.parent;
    }
    Ok(None)
}

/// A block below the workflow's own, and the step that opens it.
struct InnerBlock {
    block: BlockIndex,
    opener: StepIndex,
}

/// The blocks from `block` upwards, without the workflow's own.
fn way_to(definition: &Definition, block: BlockIndex) -> Vec<InnerBlock> {
    let around = definition.blocks_around(block);
    around
        .map(|(block, opener)| InnerBlock { block, opener })
        .collect()
}

/// The innermost scope around `from`, or itself, whose block is on the way or is the workflow's own. What is left of the
/// way leads down from there.
fn climb(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    from: ScopeNumber,
    way: &mut Vec<InnerBlock>,
) -> Result<ScopeNumber, StoreError> {
    let mut number = from;
    while let Some(scope) = run.scope(turn, number)? {
        if let Some(depth) = way.iter().position(|inner| inner.block == scope.block) {
            way.truncate(depth);
            break;
        }
        number = scope.parent;
    }
    Ok(number)
}
