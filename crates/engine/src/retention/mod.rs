//! Ended runs are kept for a time and then forgotten, with everything that is theirs (W4).
//!
//! A run's own record goes first, in one turn with its names, keys and index rows, so that callers
//! never see half of one; what is left of it is found by its number, and may take several turns.

mod rows;
mod sweep;

pub use sweep::SweepRuns;

pub(crate) use sweep::expire_again;
