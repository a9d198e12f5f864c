//! Deleting a namespace (A41).

use crate::ids::Namespace;
use crate::limits::SWEEP_ROWS_MAX;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::tables::{
    ActionRunsByAction, Actions, DeadLetterQueues, DeadLetters, Keys, Namespaces, StreamNames,
    Table, Workers, Workflows,
};
use crate::turn::{Outcome, Turn};
use crate::worker;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Deletes the namespace that the command is sent to, which must be empty but for workers that have
/// long been silent. Deleting one that is not
/// there is no error; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteNamespace {}

impl DeleteNamespace {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        if *namespace == Namespace::default_namespace() {
            return Err(Rejection::NamespaceIsDefault.into());
        }
        let is_found = turn.get::<Namespaces>(namespace)?.is_some();
        worker::remove_silent(turn, namespace)?;
        let left = left(turn, namespace)?;
        if !left.is_empty() {
            let namespace = namespace.clone();
            let left = left.join(", ");
            return Err(Rejection::NamespaceNotEmpty { namespace, left }.into());
        }
        // One for each action that ever had a letter: nothing else of the namespace outlives its use.
        for (queue, _) in turn.list::<DeadLetterQueues>(namespace, usize::MAX)? {
            turn.delete::<DeadLetterQueues>(&queue);
        }
        turn.delete::<Namespaces>(namespace);
        Ok(Reply::Deleted { is_found })
    }
}

/// What is left in a namespace, in the plural. Runs, plans, schedules and triggers are left as long as
/// their workflow; what waits to be forgotten (W4) is a run or an action run.
fn left(turn: &Turn<'_, '_>, namespace: &Namespace) -> Result<Vec<&'static str>, StoreError> {
    let found = [
        ("workflows", has_rows::<Workflows>(turn, namespace)?),
        ("actions", has_rows::<Actions>(turn, namespace)?),
        (
            "action runs",
            has_rows::<ActionRunsByAction>(turn, namespace)?,
        ),
        ("dead letters", has_rows::<DeadLetters>(turn, namespace)?),
        ("workers", has_rows::<Workers>(turn, namespace)?),
        ("keys", has_keys(turn, namespace)?),
        ("streams", has_rows::<StreamNames>(turn, namespace)?),
    ];
    let left = found.into_iter().filter(|(_, is_left)| *is_left);
    Ok(left.map(|(noun, _)| noun).collect())
}

fn has_rows<T: Table>(turn: &Turn<'_, '_>, namespace: &Namespace) -> Result<bool, StoreError> {
    Ok(!turn.list::<T>(namespace, 1)?.is_empty())
}

/// Whether a key is left that has not expired; of very many expired ones, the sweep comes first.
fn has_keys(turn: &Turn<'_, '_>, namespace: &Namespace) -> Result<bool, StoreError> {
    let now_ms = turn.now_ms();
    let mut expired_count = 0;
    let mut is_left = false;
    turn.visit::<Keys>(namespace, |_, record| {
        expired_count += 1;
        is_left = record.is_live(now_ms) || expired_count == SWEEP_ROWS_MAX;
        if is_left {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(is_left)
}
