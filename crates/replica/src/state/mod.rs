//! The replicated state: rows, how entries change them, and how they travel as a snapshot.
//!
//! The store runs without a write-ahead log, since the Raft log is one (design rule 5). What every
//! entry writes goes into one batch together with the log id that it belongs to, so after a crash
//! the rows stand at some earlier entry and the log replays the rest. One column family holds all
//! rows: a batch is then atomic without further care, and so is what a flush or checkpoint keeps.

pub(crate) mod agreement;
pub(crate) mod applier;
pub(crate) mod digest;
pub(crate) mod feed;
pub(crate) mod fsync;
pub(crate) mod generation;
pub(crate) mod machine;
pub(crate) mod rocks;
pub(crate) mod rows;
pub(crate) mod snapshot;
pub(crate) mod store;

#[cfg(test)]
mod applier_tests;
#[cfg(test)]
mod rocks_tests;
