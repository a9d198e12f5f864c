//! The location of the binary `flo`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names the binary; `cargo xtask verify` sets it.
const VARIABLE: &str = "FLOTILLA_BINARY";

/// A command that runs `flo`, without the caller's settings for it.
///
/// # Panics
/// When the binary does not exist.
pub(crate) fn flo() -> Command {
    flo_within(&[])
}

/// The same, started by another program, which gets the binary and its arguments.
pub(crate) fn flo_within(launcher: &[OsString]) -> Command {
    let mut command = match launcher {
        [] => Command::new(path()),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(path());
            command
        }
    };
    forget_settings(&mut command);
    command
}

/// Removes the caller's settings for `flo` from a command.
pub(crate) fn forget_settings(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("FLO_")) {
            command.env_remove(name);
        }
    }
}

/// The folder of the binary, for the `PATH` of a shell.
///
/// # Panics
/// When the binary does not exist.
pub(crate) fn folder() -> &'static Path {
    path().parent().expect("a file is in a folder")
}

fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(find)
}

fn find() -> PathBuf {
    let path = env::var_os(VARIABLE).map_or_else(beside_tests, PathBuf::from);
    assert!(
        path.is_file(),
        "expected the binary `flo` at {}, but it does not exist: run `cargo xtask verify`, or \
         `cargo build --workspace` before `cargo test`, or name it in {VARIABLE}",
        path.display()
    );
    path
}

/// Tests are in the folder `deps`, which is beside the binary; other programs are directly beside it.
fn beside_tests() -> PathBuf {
    let program = env::current_exe().expect("a running process has a file");
    let folder = program.parent().expect("a file is in a folder");
    match folder.file_name() {
        Some(name) if name == "deps" => folder.with_file_name("flo"),
        _ => folder.join("flo"),
    }
}
