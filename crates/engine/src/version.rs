//! What a cluster has agreed to decide (design rule 12).
//!
//! Replicas of one cluster may run different releases while it is upgraded, and must decide the same. So what a
//! release decides differently from the one before, a new command included, begins with an engine version of
//! its own. The cluster agrees on a version, as an entry of its log, once every member knows it; until then all
//! decide as before, and no newer command is proposed.

/// The newest engine version that this build knows: it decides as any from [`ENGINE_VERSION_FIRST`] to this one.
pub const ENGINE_VERSION: u32 = 1;

/// The version on which a cluster has agreed that has never raised it.
pub const ENGINE_VERSION_FIRST: u32 = 1;

const _: () = assert!(ENGINE_VERSION >= ENGINE_VERSION_FIRST);
