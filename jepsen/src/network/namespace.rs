//! Runs work in a network namespace of this machine, and the tool `ip` that makes namespaces.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io;
use std::panic;
use std::path::Path;
use std::process::Command;
use std::thread;

/// Where `ip netns` keeps namespaces.
const FOLDER: &str = "/var/run/netns";

/// Runs work in a named namespace: the sockets that it opens and the programs that it runs belong there.
///
/// It runs in a dedicated thread, since a thread that has entered a namespace stays there.
///
/// # Errors
/// When the namespace cannot be entered.
pub(super) fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let handle = File::open(Path::new(FOLDER).join(namespace))?;
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            setns(&handle, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        });
        let result = thread.join();
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// Runs `ip`.
///
/// # Errors
/// The output of `ip` when it fails.
pub(super) fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| format!("`ip` cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`ip {}` failed: {}",
        arguments.join(" "),
        said.trim()
    ))
}

/// Runs `ip` for a namespace.
///
/// # Errors
/// As [`ip`].
pub(super) fn ip_within(namespace: &str, arguments: &[&str]) -> Result<(), String> {
    ip(&[&["-n", namespace][..], arguments].concat())
}
