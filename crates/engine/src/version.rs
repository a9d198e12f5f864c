//! What a cluster has agreed to decide (design rule 12).
//!
//! Replicas of one cluster may run different releases while it is upgraded, and must decide the same. So what a
//! release decides differently from the one before, a new command included, begins with an engine version of
//! its own. The cluster agrees on a version, as an entry of its log, once every member knows it; until then all
//! decide as before, and no newer command is proposed.

use crate::command::Body;

/// The newest engine version that this build knows: it decides as any from [`ENGINE_VERSION_FIRST`] to this one.
pub const ENGINE_VERSION: u32 = 3;

/// The version on which a cluster has agreed that has never raised it.
pub const ENGINE_VERSION_FIRST: u32 = 1;

/// What is set aside can be taken up again, and what that needs is kept.
pub(crate) const TAKES_UP: u32 = 2;

/// A run remembers the trace that it was started in.
pub(crate) const TRACES: u32 = 3;

const _: () = assert!(ENGINE_VERSION >= ENGINE_VERSION_FIRST);

impl Body {
    /// The engine version with which the command came: a cluster below it must not propose it.
    #[must_use]
    pub fn since(&self) -> u32 {
        if matches!(self, Self::RetryQuarantined(_)) {
            return TAKES_UP;
        }
        if matches!(self, Self::StartTracedRun(_)) {
            return TRACES;
        }
        ENGINE_VERSION_FIRST
    }
}
