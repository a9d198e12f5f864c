//! `cargo xtask local` with the built `flo`: three nodes serve, stop on request, and resume later.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_xtask");

/// The binary that `cargo xtask verify` names, or the one beside xtask.
fn flo() -> PathBuf {
    let beside = || Path::new(PROGRAM).with_file_name("flo");
    let path = env::var_os("FLOTILLA_BINARY").map_or_else(beside, PathBuf::from);
    assert!(
        path.is_file(),
        "expected flo at {}: build the workspace first",
        path.display()
    );
    path
}

/// The environment with which a client reaches the nodes.
type Variables = BTreeMap<String, String>;

/// The running command; dropping it stops it.
struct Local {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Local {
    /// Starts it, and returns the environment of a client once the nodes serve.
    fn start(folder: &Path, port: u16) -> (Self, Variables) {
        let mut child = Command::new(PROGRAM)
            .args(["local", "--port", &port.to_string(), "--folder"])
            .arg(folder)
            .env("FLOTILLA_BINARY", flo())
            .stdout(Stdio::piped())
            .spawn()
            .expect("xtask starts");
        let stdout = child.stdout.take().expect("a pipe");
        let lines = BufReader::new(stdout).lines();
        let mut local = Self { child, lines };
        let variables = local.variables();
        (local, variables)
    }

    /// The variables on the lines before the last.
    fn variables(&mut self) -> Variables {
        let mut variables = Variables::new();
        for line in self.lines.by_ref() {
            let line = line.expect("text");
            let export = line.trim_start().strip_prefix("export ");
            if let Some((name, value)) = export.and_then(|export| export.split_once('=')) {
                variables.insert(name.to_owned(), value.to_owned());
            }
            if line.contains("Ctrl-C") {
                return variables;
            }
        }
        panic!("expected the nodes to serve, but the command ended after {variables:?}");
    }

    fn stop(mut self) {
        self.ask();
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    fn ask(&self) {
        let id = i32::try_from(self.child.id()).expect("a process id is a positive i32");
        kill(Pid::from_raw(id), Signal::SIGTERM).expect("it runs");
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask();
            self.child.wait().expect("it ends");
        }
    }
}

/// A first port from which all ports of three nodes are free.
fn free_port() -> u16 {
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let are_free = |first: u16| {
        let mut nodes = [0, 10, 20].map(|node| first + node).into_iter();
        nodes.all(|node| (node..node + 3).all(is_free))
    };
    // Below the ephemeral ports; other searches go upwards.
    let mut candidates = (20_000..31_900).rev().step_by(30);
    candidates
        .find(|first| are_free(*first))
        .expect("nine free ports")
}

fn status(variables: &Variables) -> Value {
    let output = Command::new(flo())
        .args(["cluster", "status", "-o", "json"])
        .envs(variables)
        .output()
        .expect("flo starts");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn three_nodes_serve_until_they_are_stopped_and_continue_with_their_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port = free_port();
    let (local, variables) = Local::start(folder.path(), port);
    assert_eq!(variables["FLO_ENDPOINT"].split(',').count(), 3);
    let first = status(&variables);
    assert_eq!(first["nodes"].as_array().map(Vec::len), Some(3));
    local.stop();

    let (local, variables) = Local::start(folder.path(), port);
    assert_eq!(status(&variables)["cluster_id"], first["cluster_id"]);
    local.stop();
}
