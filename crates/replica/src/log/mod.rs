//! The Raft log: durable on request, one writer, recent entries in memory.
//!
//! [`store::LogStore`] is openraft's view. It keeps the recent entries in a [`window`], sends every
//! write in order to one [`writer`] thread, which makes many of them durable with one fsync, and
//! reads what has left the window from the [`device`]. [`rocks`] is the device of a real node.

pub(crate) mod contents;
pub(crate) mod device;
pub(crate) mod meter;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod rocks;
pub(crate) mod store;
pub(crate) mod vote;
pub(crate) mod window;
pub(crate) mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod memory_device;
#[cfg(test)]
mod suite;
