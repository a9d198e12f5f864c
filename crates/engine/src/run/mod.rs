//! Runs: commands, and how a run advances.
//!
//! A run is a set of active steps (design rule 7). It advances by a work queue, not by recursion: each piece of work
//! reads the run, changes it, and may add more work. `advance` lists the kinds of work; each kind has its own file.

mod advance;
mod approval;
mod attributes;
mod branches;
mod cancel;
mod cancel_scope;
mod child;
mod continuation;
mod create;
mod decide;
mod decide_approval;
mod emit;
mod enter;
mod evaluation;
mod execute;
mod failure;
mod fallback;
mod finish;
mod finish_step;
mod for_each;
mod index;
mod input;
mod kept_signals;
mod loop_result;
mod loop_warning;
mod merge;
mod outcome;
mod output;
mod release;
mod render;
mod retry;
mod run_timeout;
mod schema_check;
mod scope;
mod scope_search;
mod signal;
mod signal_wait;
mod start;
mod start_timer;
mod state;
mod step_timeout;
mod step_timer;
mod switch;
mod timeout_timers;
mod timer_step;
mod visible;
mod wake;
mod work_queue;
mod write;

pub use cancel::CancelRun;
pub use decide::DecideSchemaCheck;
pub use decide_approval::DecideApproval;
pub use signal::SignalRun;
pub use start::{StartRun, StartTime, VersionChoice};

pub(crate) use advance::{advance, advance_after_wait};
pub(crate) use child::FIRST_WORK;
pub(crate) use continuation::fire as fire_continuation;
pub(crate) use create::{NewRun, create};
pub(crate) use execute::create_action_run;
pub(crate) use failure::{error_field, error_in, is_failure};
pub(crate) use index::forget as forget_indexes;
pub(crate) use loop_warning::describe as describe_loop;
pub(crate) use outcome::name as outcome_name;
pub(crate) use release::{is_awaited, release_from_quarantine};
pub(crate) use retry::next_attempt;
pub(crate) use step_timer::wake_timer;
pub(crate) use timeout_timers::note_taken;
pub(crate) use wake::{begin_run, expire_wait, time_out_run, time_out_step, wake_step};
pub(crate) use work_queue::WorkQueue;
pub(crate) use write::write_all;
