//! Running an action outside any workflow (A2).

use super::open::{ActionInput, Opening, Owner, open};
use crate::ids::{ActionName, IdempotencyKey, Namespace};
use crate::json::Json;
use crate::rejection::Rejection;
use crate::reply::ActionInvoked;
use crate::tables::{ActionRunKeys, Actions};
use crate::task;
use crate::turn::{Outcome, Turn};
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
    /// How long it is put off, in milliseconds.
    pub delay_ms: u64,
    /// Which workers may take it (A3).
    pub labels: BTreeMap<String, String>,
    /// The caller's key: the same one gives the same action run.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl InvokeAction {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<ActionInvoked> {
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
        let action = turn
            .get::<Actions>(&(namespace.clone(), self.name.clone()))?
            .ok_or_else(|| Rejection::ActionNotFound(self.name.clone()))?;
        if !action.is_enabled {
            return Err(Rejection::ActionDisabled(self.name.clone()).into());
        }
        let opening = Opening {
            namespace: namespace.clone(),
            name: self.name.clone(),
            owner: Owner::Caller,
            input: ActionInput::Own(self.input.clone()),
            priority: self.priority,
            labels: self.labels.clone(),
            idempotency_key: self.idempotency_key.clone(),
        };
        let number = open(turn, &action, opening)?;
        if let Some(key) = &key {
            turn.put::<ActionRunKeys>(key, number);
        }
        task::make_ready_after(turn, None, number, self.delay_ms)?;
        Ok(ActionInvoked {
            action_run: number,
            is_existing: false,
        })
    }
}
