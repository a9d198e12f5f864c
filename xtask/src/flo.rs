//! Builds and finds the binary `flo` and the others.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{cargo, child, project, requirements};

/// Names an existing `flo` to use instead of building one.
const NAMED: &str = "FLOTILLA_BINARY";

/// `flo` as released.
pub(crate) struct Release {
    /// The binary.
    pub(crate) path: PathBuf,
    /// Whether it was named by the caller; then its sources are not known.
    is_named: bool,
}

impl Release {
    /// The binary that `FLOTILLA_BINARY` names, or else a newly built one.
    ///
    /// # Errors
    /// If the build lacks something or fails.
    pub(crate) fn find() -> Result<Self> {
        if let Some(path) = env::var_os(NAMED) {
            let path = std::path::absolute(PathBuf::from(path))?;
            let is_named = true;
            return Ok(Self { path, is_named });
        }
        requirements::ensure()?;
        Ok(Self {
            path: build_release("flotilla-cli", "flo")?,
            is_named: false,
        })
    }

    /// Its version, and the commit from which it was built.
    ///
    /// # Errors
    /// If it does not run.
    pub(crate) fn version(&self) -> Result<String> {
        let version = child::first_line(command(&self.path).arg("--version"))?;
        let mut describe = Command::new("git");
        describe
            .args(["describe", "--always", "--dirty"])
            .current_dir(project::root());
        // Without git history there is no commit.
        let commit = child::first_line(&mut describe).unwrap_or_default();
        let version = if self.is_named {
            format!("{version} (prebuilt binary; sources at {commit})")
        } else {
            format!("{version} {commit}")
        };
        Ok(version.trim_end().to_owned())
    }
}

/// Builds `flo` and what it needs, and returns its path.
///
/// # Errors
/// If the build fails.
pub(crate) fn build() -> Result<PathBuf> {
    build_beside(&[])
}

/// As [`build`], with other binaries of the workspace beside it.
///
/// # Errors
/// If the build fails.
pub(crate) fn build_beside(binaries: &[&str]) -> Result<PathBuf> {
    build_binaries(&[&["flo"], binaries].concat())?;
    locate(&project::target_dir()?, "debug", "flo")
}

/// Builds a binary of the workspace without `flo`, and returns its path.
///
/// # Errors
/// If the build fails.
pub(crate) fn build_only(binary: &str) -> Result<PathBuf> {
    build_binaries(&[binary])?;
    locate(&project::target_dir()?, "debug", binary)
}

/// Features are resolved for the whole workspace: a build of one package resolves fewer, and the heavy dependencies would
/// be compiled a second time for the tests.
fn build_binaries(binaries: &[&str]) -> Result<()> {
    let mut arguments = vec!["build", "--workspace", "--locked"];
    arguments.extend(binaries.iter().flat_map(|binary| ["--bin", binary]));
    cargo::run_long(&arguments)
}

/// Builds one package as it is released, and returns the path of its binary.
///
/// One package, because users build `flo` in the same way.
///
/// # Errors
/// If the build fails.
pub(crate) fn build_release(package: &str, binary: &str) -> Result<PathBuf> {
    cargo::run(&["build", "--release", "--locked", "--package", package])?;
    locate(&project::target_dir()?, "release", binary)
}

/// A call of `flo` in the root folder without the caller's own cluster: it does not inherit variables
/// named `FLO_…`.
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
            "expected the binary {}, but it does not exist",
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
