//! Deleting a workflow (W5).
//!
//! The first batch ends the schedule and the trigger and removes the workflow's record: from then on the workflow does
//! not exist for any caller. What is left is found by its name. Until that is deleted too, the name is not free: a
//! create is refused.

use crate::ids::{Namespace, WorkflowName};
use crate::limits::SWEEP_ROWS_MAX;
use crate::plan::{self, RevisionChange};
use crate::quota::QuotaDimension;
use crate::reply::WorkflowDeleted;
use crate::store::StoreError;
use crate::tables::{
    DefinitionNumber, DefinitionSources, Definitions, QuarantinedKind, Revisions,
    RevisionsByContent, RunsByWorkflow, Versions, WorkflowCounts, Workflows, WorkflowsBeingDeleted,
};
use crate::turn::{Turn, TurnResult};
use crate::workflow_rejection::WorkflowRejection;
use crate::{schedule, trigger};
use serde::{Deserialize, Serialize};

/// Deletes a workflow that has no runs, with all its revisions, its schedule, its trigger and the state of its plans.
/// The rows are deleted in bounded batches: while some are left, the reply asks for another command. Deleting a missing
/// workflow succeeds; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteWorkflow {
    /// The workflow.
    pub workflow: WorkflowName,
}

/// Names a workflow.
type WorkflowKey = (Namespace, WorkflowName);

/// The rows of one revision that are found by its number. That of [`Revisions`] is deleted after them.
const REVISION_ROWS: usize = 5;

impl DeleteWorkflow {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<WorkflowDeleted> {
        let key = (namespace.clone(), self.workflow.clone());
        hide(turn, &key)?;
        if turn.get::<WorkflowsBeingDeleted>(&key)?.is_none() {
            return Ok(WorkflowDeleted {
                is_found: false,
                has_more: false,
            });
        }
        let mut rows_left = SWEEP_ROWS_MAX;
        plan::delete_all(turn, &key, &mut rows_left)?;
        delete_revisions(turn, &key, &mut rows_left)?;
        for revision in turn.keys::<Revisions>(&key, rows_left)? {
            turn.delete::<Revisions>(&revision);
            rows_left -= 1;
        }
        for version in turn.keys::<Versions>(&key, rows_left)? {
            turn.delete::<Versions>(&version);
            rows_left -= 1;
        }
        // With no room left there may be rows that were not looked at.
        let has_more = rows_left == 0;
        if !has_more {
            turn.delete::<WorkflowsBeingDeleted>(&key);
            count_out(turn, namespace)?;
        }
        Ok(WorkflowDeleted {
            is_found: true,
            has_more,
        })
    }
}

/// Makes the workflow invisible, unless it is already.
///
/// # Errors
/// [`WorkflowRejection::HasRuns`] if it has runs, open or ended.
fn hide(turn: &mut Turn<'_, '_>, key: &WorkflowKey) -> TurnResult<()> {
    let Some(workflow) = turn.get::<Workflows>(key)? else {
        return Ok(());
    };
    if turn.first_key_from::<RunsByWorkflow>(key, key)?.is_some() {
        return Err(WorkflowRejection::HasRuns(key.1.clone()).into());
    }
    schedule::delete(turn, key)?;
    trigger::delete(turn, key)?;
    let change = RevisionChange {
        before: Some(workflow.latest),
        after: None,
    };
    plan::latest_changed(turn, key, change)?;
    turn.delete::<Workflows>(key);
    turn.put::<WorkflowsBeingDeleted>(key, ());
    Ok(())
}

/// Deletes revisions, as many as there is room for.
fn delete_revisions(
    turn: &mut Turn<'_, '_>,
    key: &WorkflowKey,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    for revision in turn.keys::<RevisionsByContent>(key, rows_left.div_ceil(REVISION_ROWS))? {
        let DefinitionNumber(number) = revision.4;
        turn.release_quarantined((QuarantinedKind::Schedule, number));
        turn.release_quarantined((QuarantinedKind::Trigger, number));
        turn.delete::<Definitions>(&DefinitionNumber(number));
        turn.delete::<DefinitionSources>(&DefinitionNumber(number));
        turn.delete::<RevisionsByContent>(&revision);
        *rows_left = rows_left.saturating_sub(REVISION_ROWS);
    }
    Ok(())
}

/// Counts a workflow of the namespace no longer.
fn count_out(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<(), StoreError> {
    turn.note_use(namespace, QuotaDimension::Workflows, -1);
    let count = turn.get::<WorkflowCounts>(namespace)?;
    match count.map_or(0, |count| *count) {
        0 => panic!("every workflow is counted"),
        1 => turn.delete::<WorkflowCounts>(namespace),
        count => turn.put::<WorkflowCounts>(namespace, count - 1),
    }
    Ok(())
}
