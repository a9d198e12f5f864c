//! The binary `flo`: built, then found.

use std::path::{Path, PathBuf};

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
