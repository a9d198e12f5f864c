//! Engine versions: the behavior on which a cluster has agreed (design rule 12).
//!
//! During an upgrade, replicas of one cluster may run different releases and must still decide identically. Every
//! behavior change, including a new command, therefore starts with a new engine version. Once every member knows a
//! version, the cluster agrees on it with a log entry. Until then, all members behave as before, and no newer command
//! is proposed.

/// The newest engine version that this build knows. The build can behave as any version from [`ENGINE_VERSION_FIRST`]
/// to this one.
pub const ENGINE_VERSION: u32 = 1;

/// The engine version of a cluster that has never raised it.
pub const ENGINE_VERSION_FIRST: u32 = 1;

const _: () = assert!(ENGINE_VERSION >= ENGINE_VERSION_FIRST);
