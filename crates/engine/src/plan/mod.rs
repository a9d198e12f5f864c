//! Plans: executors for one purpose, tried in order until one gives a result (W30–W38).
//!
//! An active step executes a plan. The execution fixes the order of the executors when it begins, and always has one
//! current executor: it waits for the attempt's action run, for the report on it, or for the delay before the next
//! attempt. Each attempt must pass the executor's breaker and rate limit; an attempt that does not pass is not a
//! failure. The state of an execution is part of its run. The state of executors belongs to the plan, whichever
//! revision its runs are pinned to: one record per executor, written when an attempt begins and when it ends.
//!
//! - `execute`, `finish_attempt`, `end`, `abandon` — the execution, from its beginning to its end.
//! - `order` — the selections. `executor_stats` — how attempts change breaker, rate and health.
//! - `breaker`, `rate`, `health`, `errors` — the policies, which access no tables.
//! - `delete` — what goes with a deleted workflow.
//! - `cache` — cached results.
//! - `events` — which plans an invalidation event concerns. `invalidate`, `reset` — the commands.

mod abandon;
mod breaker;
mod cache;
mod delete;
mod end;
mod errors;
mod events;
mod execute;
mod execution;
mod executor_stats;
mod finish_attempt;
mod health;
mod invalidate;
mod order;
mod rate;
mod reset;

pub use invalidate::InvalidateCache;
pub use reset::ResetPlan;

pub(crate) use abandon::abandon;
pub(crate) use breaker::{BreakerDecision, decide, probes_count, probes_max};
pub(crate) use cache::{expire as expire_cache, release_from_quarantine};
pub(crate) use delete::delete_all;
pub(crate) use events::{RevisionChange, latest_changed};
pub(crate) use execute::execute;
pub(crate) use execution::Execution;
pub(crate) use finish_attempt::finish_attempt;
pub(crate) use health::score;
pub(crate) use rate::{full_until_ms, remaining as remaining_calls};
