//! Runs another program and keeps its exit code.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// A program that ran and failed. It has printed the reason on its own output.
#[derive(Debug)]
pub(crate) struct ChildFailed {
    /// The command as a user would type it.
    pub(crate) command: String,
    /// Its exit code, as a shell would report it; never 0.
    pub(crate) code: u8,
}

impl fmt::Display for ChildFailed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` exited with {}", self.command, self.code)
    }
}

impl std::error::Error for ChildFailed {}

/// Runs the program to its end; its output goes to ours.
///
/// # Errors
/// [`ChildFailed`] if it ran and failed; an I/O error if it could not be started.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| not_started(&shown))?;
    check(shown, status)
}

/// The standard output of a program. Its standard error goes to ours.
///
/// # Errors
/// As [`run`].
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let shown = show(command);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| not_started(&shown))?;
    check(shown, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first line that a program prints, such as its version.
///
/// # Errors
/// As [`run`].
pub(crate) fn first_line(command: &mut Command) -> Result<String> {
    let said = stdout(command)?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

fn not_started(shown: &str) -> String {
    format!("expected to run `{shown}`, but it did not start")
}

fn check(command: String, status: ExitStatus) -> Result<()> {
    match code(status) {
        0 => Ok(()),
        code => Err(ChildFailed { command, code }.into()),
    }
}

/// The command as a user would type it: without its environment and the program's folder.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// The exit code as a shell reports it: 128 plus the signal's number for a killed program.
fn code(status: ExitStatus) -> u8 {
    let code = match status.code() {
        Some(code) => code,
        None => 128 + status.signal().unwrap_or(0),
    };
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<()> {
        run(Command::new("/bin/sh").args(["-c", script]))
    }

    #[test]
    fn a_success_is_not_an_error() {
        shell("true").unwrap();
    }

    #[test]
    fn a_failure_keeps_the_code_and_names_the_command() {
        let error = shell("exit 7").unwrap_err();
        assert_eq!(error.to_string(), "`sh -c exit 7` exited with 7");
    }

    #[test]
    fn a_killed_child_counts_as_a_shell_counts_it() {
        let error = shell("kill -KILL $$").unwrap_err();
        assert_eq!(error.downcast_ref::<ChildFailed>().unwrap().code, 137);
    }

    #[test]
    fn the_first_line_is_what_a_program_says_of_itself() {
        let say = |script| first_line(Command::new("/bin/sh").args(["-c", script]));
        assert_eq!(say("echo etcd 3; echo more").unwrap(), "etcd 3");
        assert_eq!(say("true").unwrap(), "");
        assert!(say("exit 1").unwrap_err().is::<ChildFailed>());
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert!(error.to_string().contains("`no-such-program`"), "{error}");
    }
}
