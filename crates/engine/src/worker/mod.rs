//! The worker registry (A20–A22).

mod activity;
mod drain;
mod health;
mod heartbeat;
mod register;

pub use drain::{DeregisterWorker, DrainWorker};
pub use health::ReleaseWorker;
pub use heartbeat::HeartbeatWorker;
pub use register::RegisterWorker;

pub(crate) use activity::{count, count_records, hold, is_draining, is_taking_tasks, let_go};
pub(crate) use health::{fall_silent, take_up};
pub(crate) use register::remove_silent;
