//! Request ids: make it safe to retry a command without a natural key (design rule 9).
//!
//! Accepted commands are remembered with a compact reply; rejected ones are evaluated again. Each namespace has its own
//! ids, and so have the commands of the cluster: the same id in another namespace is another request. The oldest ids are
//! deleted first: sweeps delete those past the window and, at the limit in count or bytes, those too old for clients to
//! retry. A younger id is never deleted; if no older one is left, new work is rejected, except that of
//! namespaces that have fewer ids than their share (ADR 0041).
//!
//! A command may be delayed for longer than its id is remembered, for example in the buffers of a node that is
//! suspended. Ids of clients carry the time at which they were made (ADR 0023), so such a command is recognized and
//! rejected.

mod age;
mod memory;
mod sweep;
mod usage;

pub use sweep::SweepRequests;

pub(crate) use age::is_past;
pub(crate) use memory::{admit, remember, remembered};
