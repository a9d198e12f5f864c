//! Removes networks when their process has ended, however it ends.

use super::names::owner;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, then kills the processes in the namespaces and removes these. Virtual cards
/// and bridges are removed with their namespace.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
cat
for namespace do
    for process in $(ip netns pids "$namespace"); do kill -KILL "$process"; done
    ip netns del "$namespace"
done
"#;

/// Removes namespaces when it is dropped, and also when this process ends without a drop.
///
/// A child process does it. Its input is a pipe whose other end only this process has: the kernel closes that end
/// even after Ctrl-C and SIGKILL. The child is in a separate process group, which Ctrl-C does not reach.
#[derive(Debug)]
pub(super) struct Cleanup {
    child: Child,
}

impl Cleanup {
    /// Takes charge of namespaces that exist or will be made.
    ///
    /// # Errors
    /// When the child cannot be started.
    pub(super) fn of(namespaces: &[String]) -> io::Result<Self> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .args(namespaces)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        // It closes the child's input first. If something cannot be removed, there is no way to report it.
        let _ = self.child.wait();
    }
}

/// Removes the namespaces of processes that ended together with their cleanup child.
pub(super) fn remove_leftovers() {
    let listed = Command::new("ip").args(["netns", "list"]).output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    let is_left = |name: &&str| owner(name).is_some_and(|owner| !is_running(owner));
    let left: Vec<String> = names.filter(is_left).map(str::to_owned).collect();
    if !left.is_empty() {
        // Without `sh` they stay; but then none is made either.
        drop(Cleanup::of(&left));
    }
}

fn is_running(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}
