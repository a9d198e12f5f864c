//! From single commands to entries (design rule 2).
//!
//! Commands wait in a bounded [`queue`]; the [`batcher`] packs all that wait into one entry while a
//! few earlier entries are under way, so the more arrives, the more one sync and one round carry.
//!
//! An entry holds commands of [`ENTRY_BYTES_MAX`] and offers of [`OFFERS_BYTES_MAX`] at most, so
//! that every entry fits into a message between peers: one that does not would end replication.

pub(crate) mod batcher;
pub(crate) mod queue;
pub(crate) mod rounds;

use crate::network::client::MESSAGE_BYTES_MAX;
use flotilla_engine::limits::ENTRY_BYTES_MAX;

/// What the offers of one entry take at most, beside its commands. In bytes.
pub const OFFERS_BYTES_MAX: usize = 4 << 20;
/// What else a message with one entry holds, at most: the stamp, lengths, tags and checksum, and
/// the sender and log ids around them. In bytes.
const FRAME_BYTES_MAX: usize = 64 << 10;

const _: () = assert!(ENTRY_BYTES_MAX + OFFERS_BYTES_MAX + FRAME_BYTES_MAX <= MESSAGE_BYTES_MAX);
