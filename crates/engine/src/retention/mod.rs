//! Retention: ended runs are kept for a time and then deleted with everything that belongs to them (W4).
//!
//! A run's own record is deleted first, in one turn with its names, keys and index rows, so that callers never see a
//! partial run. The rest is found by the run's number, and may take several turns.

mod expiration;
mod rows;
mod sweep;

pub use sweep::SweepRuns;

pub(crate) use expiration::expire_again;
