//! The state of plans, and their cached results (W30, W31, W37).

use super::{DefinitionNumber, PlanExecutorRecord, tables};
use crate::ids::{EventName, ExecutorName, Namespace, PlanName, PlanNumber, WorkflowName};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// By name; survives new revisions (W31). Lives as long as the workflow.
    32 Plans((Namespace, WorkflowName, PlanName)) -> PlanRecord, HOT;
    /// Plans by number, for their timers. Live as long as the plan's record.
    33 PlanNumbers(PlanNumber) -> (Namespace, WorkflowName, PlanName);
    /// By plan and name; survive new revisions (W31). Live until they are reset.
    34 PlanExecutors((PlanNumber, ExecutorName)) -> PlanExecutorRecord, HOT;
    /// Results by the fingerprint of their cache key (W37). Live until they expire or are evicted.
    35 CachedResults((PlanNumber, u64)) -> CachedResultRecord => |result| result.output.as_str().len();
    /// Results by the time in milliseconds when they expire. Live as long as the result.
    36 CacheExpiries((PlanNumber, u64, u64)) -> ();
    /// Plans by the events that their `invalidate_on` lists (W37). Live as long as the workflow's latest revision, or the
    /// one that executed the plan last, lists the event.
    74 PlansByEvent((Namespace, EventName, WorkflowName, PlanName)) -> EventListing;
}

/// Which revisions of a plan list an event in `invalidate_on` (W37).
///
/// Invariant: at least one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventListing {
    /// Whether the workflow's latest revision lists it.
    pub is_in_latest: bool,
    /// Whether the revision that executed the plan last lists it.
    pub is_in_last_executed: bool,
}

/// A plan that has been executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Its number.
    pub number: PlanNumber,
    /// The revision that executed it last; its `invalidate_on` counts, besides that of the latest revision (W37).
    pub last_executed: DefinitionNumber,
    /// Executions that advanced the rotation of round-robin (W30).
    pub rotations_count: u64,
    /// The state of the cache.
    pub cache: CacheUsage,
}

/// The state of a plan's cache (W37).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheUsage {
    /// The number of invalidations; results from before the last one are no longer used.
    pub invalidations_count: u64,
    /// Results that are stored, dropped ones included.
    pub results_count: u64,
    /// Their outputs together, in bytes.
    pub bytes: u64,
    /// No stored result expires before this time, in milliseconds: a search for the oldest begins here and skips the
    /// tombstones of deleted rows.
    pub oldest_ms: u64,
    /// When expired results are next deleted, in milliseconds; `None` if there are no results.
    pub sweep_due_ms: Option<u64>,
}

/// A cached result (W37).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedResultRecord {
    /// The full key, which distinguishes keys with equal fingerprints.
    pub key: String,
    /// The output.
    pub output: Json,
    /// [`CacheUsage::invalidations_count`] when its execution began.
    pub invalidations_count: u64,
    /// When it expires, in milliseconds.
    pub expires_at_ms: u64,
}
