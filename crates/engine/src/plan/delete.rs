//! Deleting the plans of a workflow that is deleted.

use super::cache;
use super::events::{RevisionChange, last_executed_changed};
use crate::ids::{Namespace, WorkflowName};
use crate::limits::INVALIDATION_EVENTS_MAX;
use crate::store::StoreError;
use crate::tables::{PlanExecutors, PlanNumbers, PlanRecord, Plans, QuarantinedKind};
use crate::turn::Turn;
use std::sync::Arc;

/// What a plan counts beside its executors and cached results: its own rows, and those of its events. It also stands for
/// the definition that is read for these.
const PLAN_ROWS: usize = 4 + INVALIDATION_EVENTS_MAX;

/// Deletes the state of a workflow's plans, as much as there is room for.
pub(crate) fn delete_all(
    turn: &mut Turn<'_, '_>,
    workflow: &(Namespace, WorkflowName),
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    for key in turn.keys::<Plans>(workflow, rows_left.div_ceil(PLAN_ROWS))? {
        let plan = turn.get::<Plans>(&key)?;
        let mut plan = plan.map(Arc::unwrap_or_clone).expect("its key was read");
        delete_contents(turn, &mut plan, rows_left)?;
        if *rows_left == 0 {
            turn.put::<Plans>(&key, plan);
            return Ok(());
        }
        let change = RevisionChange {
            before: Some(plan.last_executed),
            after: None,
        };
        last_executed_changed(turn, &key, change)?;
        turn.release_quarantined((QuarantinedKind::Plan, plan.number.0));
        turn.delete::<PlanNumbers>(&plan.number);
        turn.delete::<Plans>(&key);
        *rows_left = rows_left.saturating_sub(PLAN_ROWS);
    }
    Ok(())
}

/// Deletes the cached results and executors of a plan, as many as there is room for.
fn delete_contents(
    turn: &mut Turn<'_, '_>,
    plan: &mut PlanRecord,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    cache::clear(turn, plan, rows_left)?;
    for key in turn.keys::<PlanExecutors>(&plan.number, *rows_left)? {
        turn.delete::<PlanExecutors>(&key);
        *rows_left -= 1;
    }
    Ok(())
}
