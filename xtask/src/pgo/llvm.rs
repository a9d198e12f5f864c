//! `llvm-profdata`, which merges the profiles of several processes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::requirements::is_program;
use crate::{child, install};

const PROGRAM: &str = "llvm-profdata";
/// Debian's package.
const PACKAGE: &str = "llvm-19";
/// The versions that read the profiles of our compiler, newest first.
const VERSIONS: [u32; 6] = [24, 23, 22, 21, 20, 19];

/// The program.
pub(super) struct Profdata {
    program: PathBuf,
}

impl Profdata {
    /// The program of the Rust toolchain or else of the machine; installs Debian's if there is none and we are root.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn find() -> Result<Self> {
        let sysroot = child::first_line(Command::new("rustc").args(["--print", "sysroot"]))?;
        let find = || candidates(Path::new(&sysroot)).find(|path| is_program(path));
        if find().is_none() && install::is_unattended_possible() {
            println!("Installing {PACKAGE}.");
            install::run(&[PACKAGE])?;
        }
        match find() {
            Some(program) => Ok(Self {
                program: program.into(),
            }),
            None => bail!(
                "expected {PROGRAM} 19 or later, but found none; run `rustup component add llvm-tools`, then try again"
            ),
        }
    }

    /// Merges the profiles that the processes left in a folder.
    ///
    /// # Errors
    /// If there are none, or the program cannot read them.
    pub(super) fn merge(&self, folder: &Path, merged: &Path) -> Result<()> {
        let entries = fs::read_dir(folder).context("expected the nodes to leave profiles")?;
        let paths = entries.flatten().map(|entry| entry.path());
        let profiles: Vec<PathBuf> = paths
            .filter(|path| path.extension() == Some(OsStr::new("profraw")))
            .collect();
        let mut merge = Command::new(&self.program);
        merge.arg("merge").arg("-o").arg(merged).args(profiles);
        child::run(&mut merge)
    }
}

/// Where the program may be: names to look up in the PATH, and paths.
fn candidates(sysroot: &Path) -> impl Iterator<Item = String> {
    let toolchain = tools(sysroot).map(|path| path.display().to_string());
    let versioned = VERSIONS.map(|version| format!("{PROGRAM}-{version}"));
    // Its version is not known, so it comes last.
    let unversioned = [PROGRAM.to_owned()];
    toolchain.into_iter().chain(versioned).chain(unversioned)
}

/// The program of rustup's component `llvm-tools`.
fn tools(sysroot: &Path) -> Option<PathBuf> {
    let targets = fs::read_dir(sysroot.join("lib/rustlib")).ok()?.flatten();
    let mut programs = targets.map(|target| target.path().join("bin").join(PROGRAM));
    programs.find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_the_toolchain_comes_first_and_one_of_unknown_version_last() {
        let sysroot = tempfile::tempdir().unwrap();
        let names = |sysroot| candidates(sysroot).collect::<Vec<_>>();
        let without = names(sysroot.path());
        assert_eq!(without.first().unwrap(), "llvm-profdata-24");
        assert_eq!(without.last().unwrap(), "llvm-profdata");

        let program = sysroot.path().join("lib/rustlib/host/bin/llvm-profdata");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "").unwrap();
        assert_eq!(names(sysroot.path())[0], program.display().to_string());
    }

    #[test]
    fn without_profiles_nothing_is_merged() {
        let folder = tempfile::tempdir().unwrap();
        let profdata = Profdata {
            program: "false".into(),
        };
        let gone = folder.path().join("gone");
        let error = profdata.merge(&gone, &folder.path().join("merged"));
        assert!(error.unwrap_err().to_string().contains("leave profiles"));
    }
}
