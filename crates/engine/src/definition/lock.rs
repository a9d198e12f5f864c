//! Locks: regular expressions that keep other runs from starting (W85).

use super::Template;
use crate::expression::Pattern;
use serde::{Deserialize, Serialize};

/// A compiled lock: while a run holds it, no run starts whose target matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The regular expression; at most [`LOCK_PATTERN_BYTES_MAX`](crate::limits::LOCK_PATTERN_BYTES_MAX) bytes.
    pub pattern: String,
    /// What it was compiled to.
    pub program: Pattern,
}

/// A lock as a definition has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockSource {
    /// A literal pattern, compiled when the definition is created.
    Literal(Lock),
    /// A value that is computed for each run; its pattern is compiled before the run begins. `null` does not count.
    Computed(Template),
}
