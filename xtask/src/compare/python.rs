//! Our worker in Python: plain grpcio on the files of `proto/flotilla/v1`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::flotilla::{ACTION, CONCURRENCY};
use crate::virtual_environment::VirtualEnvironment;
use crate::{child, project};

/// The folder of the worker and its requirements, below the root.
const FOLDER: &str = "benches/python";
/// The requirements, in that folder.
const REQUIREMENTS: &str = "requirements.txt";
/// The files from which its stubs are generated, below `proto`.
const PROTO: [&str; 6] = [
    "google/api/http.proto",
    "google/api/annotations.proto",
    "flotilla/rest/route.proto",
    "flotilla/v1/common.proto",
    "flotilla/v1/action.proto",
    "flotilla/v1/worker.proto",
];

const HINT: &str = "expected Python 3 with venv and pip, and grpcio from its package index, but they were not to be \
                    had; `sudo apt-get install python3-venv` installs the first, and --only etcd,restate does without";

/// A virtual environment with grpcio, and the stubs of our files.
pub(super) struct Python {
    environment: VirtualEnvironment,
}

impl Python {
    /// The environment in the target folder; created if it is missing or has other packages.
    ///
    /// # Errors
    /// If Python, pip or a package is missing and cannot be fetched.
    pub(super) fn prepare() -> Result<Self> {
        let requirements = project::root().join(FOLDER).join(REQUIREMENTS);
        let environment = VirtualEnvironment::prepare("python", &requirements).context(HINT)?;
        let python = Self { environment };
        python.make_stubs()?;
        Ok(python)
    }

    /// Its version.
    ///
    /// # Errors
    /// If it does not run.
    pub(super) fn version(&self) -> Result<String> {
        let script = "import grpc, platform; print('Python', platform.python_version() + ', grpcio', grpc.__version__)";
        child::first_line(Command::new(self.program()).args(["-c", script]))
    }

    /// The worker, to be started.
    pub(super) fn worker(&self, endpoints: &str) -> Command {
        let mut command = Command::new(self.program());
        command
            .arg(project::root().join(FOLDER).join("worker.py"))
            .args(["--endpoints", endpoints])
            .args(["--actions", ACTION])
            .args(["--concurrency", CONCURRENCY])
            .env("PYTHONPATH", self.stubs())
            // Leaves no files in the checkout.
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn make_stubs(&self) -> Result<()> {
        let stubs = self.stubs();
        fs::create_dir_all(&stubs)?;
        let mut make = Command::new(self.program());
        make.args(["-m", "grpc_tools.protoc", "--proto_path"])
            .arg(project::root().join("proto"))
            .arg("--python_out")
            .arg(&stubs)
            .arg("--grpc_python_out")
            .arg(&stubs)
            .args(PROTO);
        child::run(&mut make)
    }

    fn program(&self) -> PathBuf {
        self.environment.program("python")
    }

    fn stubs(&self) -> PathBuf {
        self.environment.folder.join("stubs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_stubs_are_there_with_all_that_they_need() {
        let folder = project::root().join("proto");
        for path in PROTO {
            let text = fs::read_to_string(folder.join(path)).unwrap();
            let imports = text
                .lines()
                .filter_map(|line| line.strip_prefix("import \""));
            // Those of Google come with the generator.
            for import in imports.filter(|import| !import.starts_with("google/protobuf/")) {
                let import = import.trim_end_matches("\";");
                assert!(PROTO.contains(&import), "{path} imports {import}");
            }
        }
    }
}
