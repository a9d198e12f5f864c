//! Deleting a namespace (A41).

use crate::ids::Namespace;
use crate::limits::{KV_KEYS_LOOKED_AT_MAX, SWEEP_ROWS_MAX};
use crate::rejection::Rejection;
use crate::reply::NamespaceDeleted;
use crate::store::StoreError;
use crate::tables::{
    ActionRunsByAction, Actions, DeadLetterQueues, DeadLetters, KeyRecord, Keys, Namespaces,
    StreamNames, Table, Workers, Workflows, WorkflowsBeingDeleted,
};
use crate::turn::{Turn, TurnResult};
use crate::{access, quota, worker};
use serde::{Deserialize, Serialize};

/// Deletes the command's namespace, which must be empty except for unhealthy workers and for API tokens
/// that have ended. Remaining rows are deleted in
/// bounded batches: while some are left, the namespace stays, and the reply asks for another command. Deleting a
/// missing namespace succeeds; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteNamespace {}

impl DeleteNamespace {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<NamespaceDeleted> {
        if *namespace == Namespace::default_namespace() {
            return Err(Rejection::NamespaceIsDefault.into());
        }
        let is_found = turn.get::<Namespaces>(namespace)?.is_some();
        let has_more = sweep(turn, namespace)?;
        // Of many workers only what is swept is known to be silent.
        let are_workers_left = !has_more && has_rows::<Workers>(turn, namespace)?;
        let mut left = left(turn, namespace, are_workers_left)?;
        if !has_more {
            left.extend(access::credentials_left(turn, &namespace.clone().into())?);
        }
        if !left.is_empty() {
            let namespace = namespace.clone();
            let left = left.join(", ");
            return Err(Rejection::NamespaceNotEmpty { namespace, left }.into());
        }
        if !has_more && is_found {
            quota::end(turn, namespace)?;
            turn.cluster_mut().namespaces_count -= 1;
            turn.delete::<Namespaces>(namespace);
        }
        Ok(NamespaceDeleted { is_found, has_more })
    }
}

/// Deletes a batch of a namespace's remaining rows: unhealthy workers, API tokens that have ended, and one row for each action that ever had a dead
/// letter. True if some remain.
fn sweep(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<bool, StoreError> {
    let removed = worker::remove_unhealthy(turn, namespace, SWEEP_ROWS_MAX)?;
    let room = SWEEP_ROWS_MAX.saturating_sub(removed);
    let ended = access::remove_ended_tokens(turn, &namespace.clone().into(), room)?;
    let room = room.saturating_sub(ended);
    let queues = turn.list::<DeadLetterQueues>(namespace, room)?;
    for (queue, _) in &queues {
        turn.delete::<DeadLetterQueues>(queue);
    }
    // With no room left there may be rows that were not looked at.
    Ok(queues.len() == room)
}

/// The kinds of items that a namespace still contains, in the plural. Runs, plans, schedules and triggers exist only
/// with their workflow; every retained item (W4) is a run or an action run.
fn left(
    turn: &Turn<'_, '_>,
    namespace: &Namespace,
    are_workers_left: bool,
) -> Result<Vec<&'static str>, StoreError> {
    let are_workflows_left = has_rows::<Workflows>(turn, namespace)?
        || has_rows::<WorkflowsBeingDeleted>(turn, namespace)?;
    let found = [
        ("workflows", are_workflows_left),
        ("actions", has_rows::<Actions>(turn, namespace)?),
        (
            "action runs",
            has_rows::<ActionRunsByAction>(turn, namespace)?,
        ),
        ("dead letters", has_rows::<DeadLetters>(turn, namespace)?),
        ("workers", are_workers_left),
        ("keys", has_keys(turn, namespace)?),
        ("streams", has_rows::<StreamNames>(turn, namespace)?),
    ];
    let left = found.into_iter().filter(|(_, is_left)| *is_left);
    Ok(left.map(|(noun, _)| noun).collect())
}

fn has_rows<T: Table>(turn: &Turn<'_, '_>, namespace: &Namespace) -> Result<bool, StoreError> {
    Ok(turn.first_key_from::<T>(namespace, namespace)?.is_some())
}

/// Whether an unexpired key remains. If there are more expired keys than are read, the sweep must delete them first.
fn has_keys(turn: &Turn<'_, '_>, namespace: &Namespace) -> Result<bool, StoreError> {
    let keys = turn.list::<Keys>(namespace, KV_KEYS_LOOKED_AT_MAX)?;
    let is_live = |record: &KeyRecord| record.is_live(turn.now_ms());
    Ok(keys.len() == KV_KEYS_LOOKED_AT_MAX || keys.iter().any(|(_, record)| is_live(record)))
}
