//! The binary `flo`, and others beside it: built, then found.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{cargo, project};

/// Builds the whole workspace and returns the path of `flo`.
///
/// The whole workspace, because a build of one package resolves fewer features and would compile
/// the heavy dependencies a second time.
///
/// # Errors
/// If the build fails.
pub(crate) fn build() -> Result<PathBuf> {
    cargo::run(&["build", "--workspace", "--locked"])?;
    locate(&project::target_dir()?, "debug", "flo")
}

/// Builds one package as it is released, and returns the path of its binary.
///
/// One package, because that is how `flo` is built for those who run it.
///
/// # Errors
/// If the build fails.
pub(crate) fn build_release(package: &str, binary: &str) -> Result<PathBuf> {
    cargo::run(&["build", "--release", "--locked", "--package", package])?;
    locate(&project::target_dir()?, "release", binary)
}

/// A call of `flo` in the root folder that hears nothing of the caller's own cluster: its variables
/// `FLO_…` are taken away.
pub(crate) fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.current_dir(project::root());
    for (name, _) in env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"FLO_") {
            command.env_remove(name);
        }
    }
    command
}

/// The path of a binary below a target folder.
fn locate(target_dir: &Path, profile: &str, binary: &str) -> Result<PathBuf> {
    let path = target_dir.join(profile).join(binary);
    if !path.is_file() {
        bail!(
            "expected the binary {}, but it is not there",
            path.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_was_not_built_is_named() {
        let target_dir = tempfile::tempdir().unwrap();
        let located = locate(target_dir.path(), "debug", "flo");
        let error = located.unwrap_err().to_string();
        assert!(error.contains("debug/flo"), "{error}");
    }

    #[test]
    fn a_built_binary_is_found() {
        let target_dir = tempfile::tempdir().unwrap();
        let path = target_dir.path().join("debug").join("flo");
        std::fs::create_dir(target_dir.path().join("debug")).unwrap();
        std::fs::write(&path, "").unwrap();
        let located = locate(target_dir.path(), "debug", "flo");
        assert_eq!(located.unwrap(), path);
    }
}
