//! A terminal session: command lines for `sh`, with `flo` in the `PATH`.

use crate::answer::Answer;
use crate::binary;
use crate::dev_node::DevNode;
use crate::process::Process;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs lines in a node's folder, with the node as endpoint.
#[derive(Debug)]
pub struct Shell<'a> {
    node: &'a DevNode,
}

impl<'a> Shell<'a> {
    /// A terminal in the node's folder.
    #[must_use]
    pub fn new(node: &'a DevNode) -> Self {
        Self { node }
    }

    /// Runs a line to its end. Its stderr is merged into its stdout, as on a screen.
    ///
    /// # Panics
    /// When there is no shell.
    #[must_use]
    pub fn run(&self, line: &str) -> Answer {
        let output = self
            .command(&format!("exec 2>&1; {line}"))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        Answer {
            line: line.to_owned(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::new(),
        }
    }

    /// Starts a line in the background, and waits for the line `ready`.
    ///
    /// # Panics
    /// When that line does not come in time.
    #[must_use]
    pub fn start(&self, name: &str, line: &str) -> Process {
        let log = self.node.scratch().log(&format!("{name}.log"));
        let process = Process::spawn(self.command(&format!("exec {line}")), log);
        process.await_ready();
        process
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        binary::forget_settings(&mut command);
        command
            .args(["-c", script])
            .current_dir(self.node.scratch().path(""))
            .env("PATH", path_with(binary::folder()))
            .env("TMPDIR", self.node.scratch().path(""))
            .env("FLO_ENDPOINT", self.node.endpoint())
            .env("API", self.node.http_api());
        command
    }
}

/// The caller's `PATH` with a folder before it.
fn path_with(folder: &Path) -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [folder.to_owned()]
        .into_iter()
        .chain(env::split_paths(&path));
    env::join_paths(folders).expect("no folder has a colon in its name")
}
