//! The location of the project. The tests of its files share this.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The repository's root folder.
///
/// Cargo sets at run time which clone it serves. The compiled-in path may be that of another
/// clone, because all of them share a target folder (ADR 0004).
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let member =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&member).parent();
        root.expect("xtask is a folder of the repository")
            .to_owned()
    });
    &ROOT
}
