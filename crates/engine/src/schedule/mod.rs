//! Schedules: runs that start because time passes (W40, W42).
//!
//! A schedule that fires has one row in the table of due ones; whoever plans or fires it names what
//! the row stands for, and a turn that finds anything else refuses: so a firing happens exactly
//! once, whatever leaders come and go (design rule 6). When a schedule becomes live or is enabled
//! its next firing is not known; the leader's driver asks cron and says it with [`PlanSchedule`].

mod due;
mod fire;
mod live;
mod plan;

pub use fire::FireSchedule;
pub use plan::PlanSchedule;

pub(crate) use live::{disable, enable, make_live, run_ended, set_aside, take_up};
