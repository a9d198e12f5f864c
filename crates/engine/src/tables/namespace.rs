//! Namespaces (A41).

use super::tables;
use crate::ids::Namespace;
use serde::{Deserialize, Serialize};

tables! {
    /// By name. Live until they are deleted.
    50 Namespaces(Namespace) -> NamespaceRecord, HOT;
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// When it was created or first written to, in milliseconds.
    pub created_at_ms: u64,
}
