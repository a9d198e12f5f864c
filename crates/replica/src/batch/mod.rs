//! Batching: from single commands to log entries (design rule 2).
//!
//! Commands wait in a bounded [`queue`]; the [`batcher`] packs all of them into one entry while a
//! few earlier entries are in flight, so that one fsync and one round carry more as the load grows.
//!
//! An entry holds one command of at most [`ENTRY_BYTES_MAX`] or several with a weight of at most
//! [`ENTRY_WEIGHT_BYTES_MAX`](flotilla_engine::limits::ENTRY_WEIGHT_BYTES_MAX), which its budget mostly admits, and
//! [`OFFERS_BYTES_MAX`] of offers. So every entry fits into a message between peers: one that does
//! not would end replication.

pub(crate) mod batcher;
mod fair_lane;
pub(crate) mod queue;
pub(crate) mod rounds;

use crate::network::client::MESSAGE_BYTES_MAX;
use flotilla_engine::limits::ENTRY_BYTES_MAX;

/// The maximum size of the offers of one entry, in addition to its commands. In bytes.
pub const OFFERS_BYTES_MAX: usize = 4 << 20;
/// The maximum size of everything else in a message with one entry: the stamp, lengths, tags and
/// checksum, and the sender and log ids around them. In bytes.
const FRAME_BYTES_MAX: usize = 64 << 10;

const _: () = assert!(ENTRY_BYTES_MAX + OFFERS_BYTES_MAX + FRAME_BYTES_MAX <= MESSAGE_BYTES_MAX);
