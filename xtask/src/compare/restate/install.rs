//! Restate's server and library, from their npm packages.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::files::is_copy;
use crate::{child, project};

/// The folder of the service and its dependencies, below the root.
const FOLDER: &str = "benches/restate";
/// Its dependencies, in that folder.
const PACKAGE: &str = "package.json";
/// The service, in that folder.
const SERVICE: &str = "service.js";

const HINT: &str = "expected node, npm and Restate's packages from npm's registry, but they could not be fetched; \
                    `sudo apt-get install nodejs npm` installs the first two, and --only etcd does without";

/// The installed packages.
pub(in super::super) struct Restate {
    folder: PathBuf,
    program: PathBuf,
}

impl Restate {
    /// The packages in the target folder; installed if they are missing or have other versions.
    ///
    /// # Errors
    /// If Node.js, npm or a package is missing and cannot be fetched.
    pub(in super::super) fn prepare() -> Result<Self> {
        let folder = project::target_dir()?.join("tools").join("restate");
        let own = project::root().join(FOLDER);
        let restate = Self {
            program: folder.join("node_modules").join(program()?),
            folder,
        };
        if !is_copy(&restate.installed(), &own.join(PACKAGE)) {
            restate.install(&own.join(PACKAGE)).context(HINT)?;
        }
        fs::copy(own.join(SERVICE), restate.folder.join(SERVICE))?;
        Ok(restate)
    }

    /// The versions of the server and of the runtime of its service.
    ///
    /// # Errors
    /// If one of them does not run.
    pub(in super::super) fn version(&self) -> Result<String> {
        let server = child::first_line(Command::new(&self.program).arg("--version"))?;
        let node = child::first_line(Command::new("node").arg("--version"))?;
        Ok(format!("{server}, service on Node.js {node}"))
    }

    /// A node with this configuration, to be started.
    pub(super) fn server(&self, configuration: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--no-logo", "--config-file"])
            .arg(configuration);
        command
    }

    /// The service, to be started.
    pub(super) fn service(&self, port: u16) -> Command {
        let mut command = Command::new("node");
        command
            .current_dir(&self.folder)
            .args([SERVICE, &port.to_string()])
            .env("NODE_ENV", "production");
        command
    }

    fn install(&self, wanted: &Path) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        // An interrupted installation does not count as installed.
        let _ = fs::remove_file(self.installed());
        let staged = self.folder.join(PACKAGE);
        fs::copy(wanted, &staged)?;
        let mut npm = Command::new("npm");
        npm.current_dir(&self.folder)
            // No package needs an install script: the server is a program inside a package.
            .args(["install", "--ignore-scripts", "--no-package-lock"])
            .args(["--no-audit", "--no-fund", "--loglevel", "error"]);
        child::run(&mut npm)?;
        if !self.program.is_file() {
            bail!(
                "expected {}, but npm did not install it",
                self.program.display()
            );
        }
        fs::copy(wanted, self.installed())?;
        Ok(())
    }

    /// The installed packages, in the form of the requirements.
    fn installed(&self) -> PathBuf {
        self.folder.join("installed.json")
    }
}

/// The server's program for this machine, below `node_modules`.
fn program() -> Result<PathBuf> {
    let system = match consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let processor = match consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("expected a processor that Restate is built for, but it is {other}"),
    };
    let package = format!("@restatedev/restate-server-{system}-{processor}");
    Ok(Path::new(&package).join("bin/restate-server"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_package_has_one_version() {
        let text = fs::read_to_string(project::root().join(FOLDER).join(PACKAGE)).unwrap();
        let package: Value = serde_json::from_str(&text).unwrap();
        let dependencies = package["dependencies"].as_object().unwrap();
        assert!(!dependencies.is_empty());
        for (name, version) in dependencies {
            let version = version.as_str().unwrap();
            let is_exact = version
                .chars()
                .all(|sign| sign.is_ascii_digit() || sign == '.');
            assert!(is_exact, "{name} {version}");
        }
    }

    #[test]
    fn the_program_is_in_the_package_of_this_machine() {
        let program = program().unwrap();
        assert!(program.starts_with("@restatedev"), "{program:?}");
        assert!(program.ends_with("bin/restate-server"), "{program:?}");
    }
}
