//! The replicated state: rows, how entries change them, and how they are transferred as a snapshot.
//!
//! The store runs without a write-ahead log, since the Raft log is one (design rule 5). Each
//! entry's writes go into one batch together with its log id. So after a crash, the rows are those
//! after some earlier entry, and the log replays the rest. One column family holds all rows, so
//! that a batch, a flush and a checkpoint are atomic without further care.

pub(crate) mod agreement;
pub(crate) mod applier;
pub(crate) mod digest;
pub(crate) mod feed;
pub(crate) mod fsync;
pub(crate) mod generation;
pub(crate) mod generations;
pub(crate) mod machine;
pub(crate) mod rocks;
pub(crate) mod rows;
pub(crate) mod snapshot;
pub(crate) mod store;

#[cfg(test)]
mod applier_tests;
#[cfg(test)]
mod rocks_tests;
