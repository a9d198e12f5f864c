//! Python virtual environments in the target folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::files::is_copy;
use crate::{child, project};

/// The copy of the requirements of the installed packages.
const INSTALLED: &str = "requirements.txt";

/// A Python virtual environment.
pub(crate) struct VirtualEnvironment {
    /// Its folder, in which its owner can store other files.
    pub(crate) folder: PathBuf,
}

impl VirtualEnvironment {
    /// The environment of this name, with the packages of the file `requirements`; made if it is missing or has other packages.
    ///
    /// # Errors
    /// If Python, pip or a package is missing and cannot be fetched.
    pub(crate) fn prepare(name: &str, requirements: &Path) -> Result<Self> {
        let folder = project::target_dir()?.join("tools").join(name);
        let environment = Self { folder };
        if !is_copy(&environment.installed(), requirements) {
            environment.install(requirements)?;
        }
        Ok(environment)
    }

    /// One of its programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("venv/bin").join(name)
    }

    fn install(&self, requirements: &Path) -> Result<()> {
        // Until all packages are installed, nothing says that they are.
        if let Err(error) = fs::remove_file(self.installed())
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error.into());
        }
        let mut make = Command::new("python3");
        let environment = self.folder.join("venv");
        child::run(make.args(["-m", "venv", "--clear"]).arg(environment))?;
        let mut install = Command::new(self.program("python"));
        install
            .args(["-m", "pip", "install", "--quiet"])
            .arg("--disable-pip-version-check")
            .arg("--requirement")
            .arg(requirements);
        child::run(&mut install)?;
        fs::copy(requirements, self.installed())?;
        Ok(())
    }

    fn installed(&self) -> PathBuf {
        self.folder.join(INSTALLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_one_version() {
        for folder in ["benches/python", "fuzz/http"] {
            let path = project::root().join(folder).join(INSTALLED);
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            for line in lines {
                assert!(line.contains("=="), "{line}");
            }
        }
    }
}
