//! From single commands to entries (design rule 2).
//!
//! Commands wait in a bounded [`queue`]; the [`batcher`] packs all that wait into one entry while a
//! few earlier entries are under way, so the more arrives, the more one sync and one round carry.

pub(crate) mod batcher;
pub(crate) mod queue;
