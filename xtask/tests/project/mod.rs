//! Where the tests find the project.

use std::env;
use std::path::{Path, PathBuf};

/// The repository's root folder.
///
/// Cargo says at run time which clone it tests: several share a target folder (ADR 0004), so that another
/// one's may be compiled in.
pub(crate) fn root() -> PathBuf {
    let member =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&member)
        .parent()
        .expect("xtask is a folder of the repository")
        .to_owned()
}
