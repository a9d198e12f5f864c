//! Invoking a stand-alone action run (A2).

use super::create::{ActionInput, NewActionRun, Owner, create};
use crate::ids::{ActionName, IdempotencyKey, Namespace};
use crate::json::Json;
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::ActionInvoked;
use crate::tables::{ActionRunKeys, Actions};
use crate::task;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Starts a stand-alone action run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvokeAction {
    /// The action.
    pub name: ActionName,
    /// The input.
    pub input: Json,
    /// Higher goes first; 10 by default.
    pub priority: u8,
    /// The delay before it becomes ready, in milliseconds.
    pub delay_ms: u64,
    /// The labels that a worker must have to take it (A3).
    pub labels: BTreeMap<String, String>,
    /// The caller's key: the same one gives the same action run.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl InvokeAction {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<ActionInvoked> {
        let key = self.idempotency_key.as_ref();
        let key = key.map(|key| (namespace.clone(), self.name.clone(), key.clone()));
        if let Some(key) = &key
            && let Some(existing) = turn.get::<ActionRunKeys>(key)?
        {
            return Ok(ActionInvoked {
                action_run: *existing,
                is_existing: true,
            });
        }
        let input_bytes = self.input.as_str().len() as u64;
        let needs = [
            (QuotaDimension::InvokesPerMinute, 1),
            (QuotaDimension::OpenActionRuns, 1),
            (QuotaDimension::PayloadBytes, input_bytes),
        ];
        quota::check(turn, namespace, &needs)?;
        let action = turn
            .get::<Actions>(&(namespace.clone(), self.name.clone()))?
            .ok_or_else(|| Rejection::ActionNotFound(self.name.clone()))?;
        if !action.is_enabled {
            return Err(Rejection::ActionDisabled(self.name.clone()).into());
        }
        let new_action_run = NewActionRun {
            namespace: namespace.clone(),
            name: self.name.clone(),
            owner: Owner::Caller,
            input: ActionInput::Own(self.input.clone()),
            priority: self.priority,
            labels: self.labels.clone(),
            idempotency_key: self.idempotency_key.clone(),
        };
        let task = create(turn, &action, new_action_run)?;
        turn.note_use(namespace, QuotaDimension::OpenActionRuns, 1);
        quota::spend(turn, namespace, needs[0])?;
        let number = task.number;
        if let Some(key) = &key {
            turn.put::<ActionRunKeys>(key, number);
        }
        task::make_ready_after(turn, None, task, self.delay_ms)?;
        Ok(ActionInvoked {
            action_run: number,
            is_existing: false,
        })
    }
}
