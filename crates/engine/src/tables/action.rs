//! Registered actions (A1).

use super::tables;
use crate::ids::{ActionName, Namespace};
use serde::{Deserialize, Serialize};

tables! {
    /// By name. Live until they are deleted.
    13 Actions((Namespace, ActionName)) -> ActionRecord, HOT;
    /// The module of a WASM action. Lives as long as the action.
    14 Modules((Namespace, ActionName)) -> ModuleRecord => |module| module.bytes.len();
}

/// A registered action (A1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// Whether workers or the nodes run it.
    pub kind: ActionType,
    /// The lease of a task, in milliseconds (A4).
    pub timeout_ms: u64,
    /// Attempts after the first.
    pub max_retries: u32,
    /// The delay before the first retry, in milliseconds; doubles with each.
    pub retry_delay_ms: u64,
    /// Free text for people.
    pub description: Option<String>,
    /// 1, and 1 more with each registration that changes it.
    pub version: u32,
    /// Whether it may be run.
    pub is_enabled: bool,
    /// When it was first registered, in milliseconds.
    pub created_at_ms: u64,
    /// When it last changed, in milliseconds.
    pub updated_at_ms: u64,
}

/// Which processes run an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionType {
    /// Workers outside the cluster.
    User,
    /// The embedded workers of the nodes (A9).
    Wasm {
        /// A digest of the module, such as SHA-256, computed outside the engine; used as the cache key.
        digest: [u8; 32],
        /// Its limits.
        limits: WasmLimits,
    },
}

/// The limits of a WASM action (A9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WasmLimits {
    /// Linear memory, in bytes.
    pub max_memory_bytes: u64,
    /// Output, in bytes.
    pub max_output_bytes: u64,
}

/// A WASM module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRecord {
    /// See [`ActionType::Wasm`].
    pub digest: [u8; 32],
    /// The binary form.
    pub bytes: Vec<u8>,
}
