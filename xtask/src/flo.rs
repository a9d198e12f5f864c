//! The binary `flo`: built, then found.

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
    locate(&project::target_dir()?)
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

/// The path of `flo` below a target folder.
fn locate(target_dir: &Path) -> Result<PathBuf> {
    let path = target_dir.join("debug").join("flo");
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
        let error = locate(target_dir.path()).unwrap_err().to_string();
        assert!(error.contains("debug/flo"), "{error}");
    }

    #[test]
    fn a_built_binary_is_found() {
        let target_dir = tempfile::tempdir().unwrap();
        let path = target_dir.path().join("debug").join("flo");
        std::fs::create_dir(target_dir.path().join("debug")).unwrap();
        std::fs::write(&path, "").unwrap();
        assert_eq!(locate(target_dir.path()).unwrap(), path);
    }
}
