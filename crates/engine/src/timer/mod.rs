//! Timers (design rule 6).

mod fire;
mod set;

pub use fire::FireTimer;

pub(crate) use set::{bring_forward, effective_due_ms, restore};
