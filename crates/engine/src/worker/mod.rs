//! The worker registry (A20–A22).

mod activity;
mod drain;
mod expiry;
mod gone;
mod health;
mod heartbeat;
mod leases;
mod owner;
mod processes;
mod register;

pub use drain::{DeregisterWorker, DrainWorker};
pub use health::{Departure, ReleaseWorker};
pub use heartbeat::HeartbeatWorker;
pub use register::RegisterWorker;

pub(crate) use activity::{Counts, count_records, is_draining, is_taking_tasks};
pub(crate) use expiry::expire_leases;
pub(crate) use gone::{free_leases_left, is_gone};
pub(crate) use health::{mark_unhealthy, release_from_quarantine};
pub(crate) use leases::{LeaseEnd, begin_lease, end_lease, move_lease};
pub(crate) use register::remove_unhealthy;
