//! Registering an action (A1).

use crate::access::{Authority, Permission};
use crate::command_scope::CommandScope;
use crate::effect::Effect;
use crate::ids::{ActionName, Namespace};
use crate::quota::{self, QuotaDimension};
use crate::reply::ActionRegistered;
use crate::store::StoreError;
use crate::tables::{ActionRecord, ActionType, Actions, ModuleRecord, Modules};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// The namespace and the name of an action.
type ActionKey = (Namespace, ActionName);

/// Registers an action. An existing action gets all fields replaced and is enabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterAction {
    /// Its name.
    pub name: ActionName,
    /// Who runs it.
    pub kind: ActionType,
    /// The module of a WASM action, inspected before proposal.
    pub module: Option<Vec<u8>>,
    /// The lease of a task, in milliseconds.
    pub timeout_ms: u64,
    /// Attempts after the first.
    pub max_retries: u32,
    /// The delay before the first retry, in milliseconds.
    pub retry_delay_ms: u64,
    /// Free text for people.
    pub description: Option<String>,
    /// Whether an existing action stays unchanged: SDKs register only missing actions.
    pub is_only_if_missing: bool,
}

impl RegisterAction {
    /// Who registers only what is missing needs less.
    pub(crate) fn authority<'c>(&self, scope: &'c CommandScope) -> Authority<'c> {
        if self.is_only_if_missing {
            let either = &[Permission::ActionWrite, Permission::ActionRegisterMissing];
            return Authority::Caller(either, scope);
        }
        Authority::Caller(&[Permission::ActionWrite], scope)
    }

    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<ActionRegistered> {
        let key = (namespace.clone(), self.name.clone());
        let existing = turn.get::<Actions>(&key)?;
        let now_ms = turn.now_ms();
        let Some(existing) = existing else {
            self.check_quota(turn, &key, 1)?;
            turn.note_use(namespace, QuotaDimension::Actions, 1);
            let record = self.record(1, now_ms);
            turn.put::<Actions>(
                &key,
                ActionRecord {
                    created_at_ms: now_ms,
                    ..record
                },
            );
            self.put_module(turn, namespace)?;
            return Ok(ActionRegistered {
                version: 1,
                is_changed: true,
            });
        };
        let same = ActionRecord {
            created_at_ms: existing.created_at_ms,
            updated_at_ms: existing.updated_at_ms,
            ..self.record(existing.version, now_ms)
        };
        if self.is_only_if_missing || same == *existing {
            return Ok(ActionRegistered {
                version: existing.version,
                is_changed: false,
            });
        }
        self.check_quota(turn, &key, 0)?;
        let version = existing.version + 1;
        let changed = ActionRecord {
            version,
            updated_at_ms: now_ms,
            ..same
        };
        turn.put::<Actions>(&key, changed);
        self.put_module(turn, namespace)?;
        Ok(ActionRegistered {
            version,
            is_changed: true,
        })
    }

    /// The action as it is registered: enabled, whatever it was before.
    fn record(&self, version: u32, now_ms: u64) -> ActionRecord {
        ActionRecord {
            kind: self.kind.clone(),
            timeout_ms: self.timeout_ms,
            max_retries: self.max_retries,
            retry_delay_ms: self.retry_delay_ms,
            description: self.description.clone(),
            version,
            is_enabled: true,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
        }
    }

    /// Checks that the quotas allow the action, which is new or not, and its module.
    fn check_quota(&self, turn: &mut Turn<'_, '_>, key: &ActionKey, new: u64) -> TurnResult<()> {
        let before = module_bytes(turn, key)?;
        let needs = [
            (QuotaDimension::Actions, new),
            (
                QuotaDimension::ModuleBytes,
                self.module_bytes().saturating_sub(before),
            ),
        ];
        quota::check(turn, &key.0, &needs)
    }

    /// The size of the module that is stored, in bytes.
    fn module_bytes(&self) -> u64 {
        match (&self.kind, &self.module) {
            (ActionType::Wasm { .. }, Some(bytes)) => bytes.len() as u64,
            (ActionType::Wasm { .. } | ActionType::User, _) => 0,
        }
    }

    fn put_module(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<(), StoreError> {
        let key = (namespace.clone(), self.name.clone());
        let sizes = (module_bytes(turn, &key)?, self.module_bytes());
        turn.note_size(namespace, QuotaDimension::ModuleBytes, sizes);
        match (&self.kind, &self.module) {
            (ActionType::Wasm { digest, .. }, Some(bytes)) => {
                let module = ModuleRecord {
                    digest: *digest,
                    bytes: bytes.clone(),
                };
                turn.put::<Modules>(&key, module);
            }
            (ActionType::Wasm { .. } | ActionType::User, _) => turn.delete::<Modules>(&key),
        }
        turn.effect(Effect::ModulesChanged);
        Ok(())
    }
}

/// The size of the module of an action, in bytes.
pub(super) fn module_bytes(turn: &mut Turn<'_, '_>, key: &ActionKey) -> Result<u64, StoreError> {
    let module = turn.get::<Modules>(key)?;
    Ok(module.map_or(0, |module| module.bytes.len() as u64))
}
