//! Plans: executors for one purpose, tried until one answers (W30–W38).
//!
//! An active step executes a plan. The execution freezes the order of the executors when it begins and
//! then stands at one of them: it waits for the attempt's action run, for the report on it, or for the
//! delay before the next attempt. Each attempt passes the executor's breaker and rate limit when it is
//! made; one that does not pass is no failure. Where an execution stands is a part of its run; what
//! executors are remembered by belongs to the plan, whichever revision its runs are pinned to, and is
//! one record an executor, written when an attempt begins and when it ends.
//!
//! - `execute`, `settle`, `end`, `abandon` — the execution, from its beginning to its end.
//! - `order` — the selections. `tally` — what attempts do to breaker, rate and health.
//! - `breaker`, `rate`, `health`, `errors` — the policies, each free of tables.
//! - `cache` — cached results. `tracking` — outcomes that come by a report.
//! - `invalidate`, `reset` — the commands.

mod abandon;
mod breaker;
mod cache;
mod end;
mod errors;
mod execute;
mod execution;
mod health;
mod invalidate;
mod order;
mod rate;
mod reset;
mod settle;
mod tally;
mod tracking;

pub use invalidate::InvalidateCache;
pub use reset::ResetPlan;

pub(crate) use abandon::abandon;
pub(crate) use breaker::{Passage, passage, probes_count, probes_max};
pub(crate) use cache::{expire as expire_cache, take_up};
pub(crate) use execute::execute;
pub(crate) use health::score;
pub(crate) use rate::{full_until_ms, remaining as remaining_calls};
pub(crate) use settle::settle;
pub(crate) use tracking::{report_timeout_ms, tracked};
