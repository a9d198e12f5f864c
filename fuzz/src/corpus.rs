//! The initial inputs of each target, one file each.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, fs, io};

/// The package's folder. Cargo says at run time which clone it serves: several can share a target folder (ADR 0004).
#[must_use]
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = env::var_os("CARGO_MANIFEST_DIR");
        folder
            .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
            .into()
    });
    &ROOT
}

/// The folder of a target's corpus.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    root().join("corpus").join(target)
}

/// The paths of a target's inputs, in order of name.
///
/// # Errors
/// If the folder cannot be read.
pub fn paths(target: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder(target))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// The inputs of a target, in order of the files' names.
///
/// # Errors
/// If a file cannot be read.
pub fn read(target: &str) -> io::Result<Vec<Vec<u8>>> {
    paths(target)?.into_iter().map(fs::read).collect()
}
