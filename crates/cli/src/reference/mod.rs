//! The generated pages of the manual: tests compare them, `UPDATE_EXPECT=1` rewrites them.

mod blocks;
mod deploy;
mod errors;
mod expression;
mod http;
mod launch;
mod metrics;
mod verbs;
mod watching;
mod words;

use std::path::PathBuf;

pub(crate) use words::words;

/// The root of the repository.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    PathBuf::from(package.expect("cargo names the package's folder")).join("../..")
}
