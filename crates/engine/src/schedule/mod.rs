//! Schedules: runs that start at given times (W40, W42).
//!
//! A schedule that fires has one row in the table of due schedules. A command that plans or fires it names the state of
//! that row, and is rejected if the row has changed; so a firing happens exactly once, across all changes of leader
//! (design rule 6). When a schedule becomes live or is enabled, its next firing is unknown; the leader's driver
//! computes it from the cron expression and proposes [`SetNextFiring`].

mod due;
mod fire;
mod live;
mod next_firing;
mod open;

pub use fire::FireSchedule;
pub use next_firing::SetNextFiring;

pub(crate) use live::{
    delete, disable, enable, is_live, make_live, quarantine, release_from_quarantine,
};
pub(crate) use open::{run_ended, run_quarantined, run_released, run_resumed};
