//! How many runs with the same value run at the same time: `concurrency` (W84).

use super::Template;
use crate::ids::ConcurrencyName;
use serde::{Deserialize, Serialize};

/// A limit of the runs that hold one concurrency key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyLimit {
    /// The value of the key: runs with equal values count together. `null` is not limited.
    pub key: Template,
    /// The maximum number of runs that hold the key at the same time; at least 1.
    pub limit: u32,
    /// The name under which workflows of the namespace share keys; `None` for keys of the workflow alone.
    pub name: Option<ConcurrencyName>,
    /// What happens to a start at the limit.
    pub on_limit: OnLimit,
}

/// What happens to a start that would exceed a concurrency limit, the strictest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OnLimit {
    /// The run waits.
    #[default]
    Queue,
    /// The run waits, the runs that waited before it are cancelled, and so is the one that has held the key for the longest
    /// time.
    CancelOldest,
    /// No run is started; the caller gets the run that has held the key for the longest time.
    Existing,
    /// No run is started.
    Reject,
}
