//! How many files the process may open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Connections and data files of a large node. A higher limit has no use.
const FILES_MAX: u64 = 65_536;

/// Raises the limit as far as the process may do so itself: many systems set a low one, for programs of other kinds.
pub(crate) fn raise_limit() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let wanted = hard.min(FILES_MAX);
    if soft < wanted
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    {
        tracing::warn!(%error, soft, wanted, "the limit of open files could not be raised");
    }
}
