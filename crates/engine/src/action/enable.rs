//! Enabling, disabling and deleting an action (A1).

use super::register::module_bytes;
use crate::effect::Effect;
use crate::ids::{ActionName, Namespace};
use crate::quota::QuotaDimension;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{ActionRecord, Actions, Modules};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Enables or disables an action; a step that runs a disabled one ends `target_disabled`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetActionEnabled {
    /// The action.
    pub name: ActionName,
    /// Whether it may be run from now on.
    pub is_enabled: bool,
}

/// Deletes an action. Deleting a missing action succeeds; open action runs continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteAction {
    /// The action.
    pub name: ActionName,
}

impl SetActionEnabled {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.name.clone());
        let action = turn
            .get::<Actions>(&key)?
            .ok_or_else(|| Rejection::ActionNotFound(self.name.clone()))?;
        if action.is_enabled != self.is_enabled {
            let (is_enabled, updated_at_ms) = (self.is_enabled, turn.now_ms());
            let changed = ActionRecord {
                is_enabled,
                updated_at_ms,
                ..(*action).clone()
            };
            turn.put::<Actions>(&key, changed);
        }
        Ok(Done {})
    }
}

impl DeleteAction {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.name.clone());
        if turn.get::<Actions>(&key)?.is_some() {
            let sizes = (module_bytes(turn, &key)?, 0);
            turn.note_size(namespace, QuotaDimension::ModuleBytes, sizes);
            turn.note_use(namespace, QuotaDimension::Actions, -1);
            turn.delete::<Actions>(&key);
            turn.delete::<Modules>(&key);
            turn.effect(Effect::ModulesChanged);
        }
        Ok(Done {})
    }
}
