//! The bookkeeping that all workers share: those of the SDK, the embedded workers of a node and the
//! workers of the simulation.
//!
//! The [`Ledger`] is pure state: it does no I/O and knows no messages. Each worker has its own
//! stream, runs its tasks in its own way and has its own way to report them.

mod ledger;
mod recent;

pub use ledger::Ledger;
