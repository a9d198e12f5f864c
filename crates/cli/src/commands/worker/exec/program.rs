//! The program that a command worker runs.

use crate::code::Code;
use crate::failure::Failure;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: OsString,
    arguments: Vec<OsString>,
    /// The first word of a shell command, if it is plain.
    shell_word: Option<String>,
}

impl Program {
    /// A program from the words of a command line; `None` without words.
    pub(super) fn from_words(words: Vec<OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        Some(Self {
            path: words.next()?,
            arguments: words.collect(),
            shell_word: None,
        })
    }

    /// A program given as a shell command.
    pub(super) fn from_shell(command: &str) -> Self {
        Self {
            path: "sh".into(),
            arguments: vec!["-c".into(), command.into()],
            shell_word: plain_word(command),
        }
    }

    /// A process that has not been started yet.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }

    /// The program's name, for messages.
    pub(super) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Looks the program up as starting it would. In a shell command, only a plain first word can
    /// be looked up. The purpose is part of the message: `run action "charge"`.
    ///
    /// # Errors
    /// `program_missing` if the program does not exist or is not executable.
    pub(super) async fn check(&self, purpose: &str) -> Result<(), Failure> {
        let refusal = |program: &str, absence: Absence| absence.refusal(purpose, program);
        find(&self.path).map_err(|absence| refusal(&self.name(), absence))?;
        match &self.shell_word {
            Some(word) if word.contains('/') => {
                find(word.as_ref()).map_err(|absence| refusal(word, absence))
            }
            Some(word) if !is_known_to_shell(word).await => Err(refusal(word, Absence::NotInPath)),
            Some(_) | None => Ok(()),
        }
    }
}

/// Why a program cannot be run.
#[derive(Clone, Copy, Debug)]
enum Absence {
    NotInPath,
    NoFile,
    NotExecutable,
}

impl Absence {
    fn refusal(self, purpose: &str, program: &str) -> Failure {
        let (found, hint) = match self {
            Self::NotInPath => (
                "it is not in any directory of PATH",
                "prefix a program in the current directory with ./",
            ),
            Self::NoFile => (
                "it does not exist",
                "relative paths start at the current directory",
            ),
            Self::NotExecutable => (
                "it is not an executable file",
                "make it executable with chmod +x",
            ),
        };
        let message = format!("expected a program {program:?} to {purpose}, but {found}");
        Failure::new(Code::ProgramMissing, message).with_hint(hint)
    }
}

/// A word that the shell runs as it is, without quotes, expansion or assignment.
fn plain_word(command: &str) -> Option<String> {
    let word = command.split_ascii_whitespace().next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    word.chars().all(is_plain).then(|| word.to_owned())
}

/// Looks a program up as the system does: a path directly, a name in the directories of PATH.
fn find(path: &OsStr) -> Result<(), Absence> {
    if !path.as_bytes().contains(&b'/') {
        let folders = env::var_os("PATH").unwrap_or_default();
        let is_there = env::split_paths(&folders).any(|folder| is_executable(&folder.join(path)));
        return if is_there {
            Ok(())
        } else {
            Err(Absence::NotInPath)
        };
    }
    let path = Path::new(path);
    if is_executable(path) {
        Ok(())
    } else if path.exists() {
        Err(Absence::NotExecutable)
    } else {
        Err(Absence::NoFile)
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether the shell knows the word as a program or a builtin.
async fn is_known_to_shell(word: &str) -> bool {
    let status = Command::new("sh")
        .args(["-c", "command -v \"$1\"", "sh", word])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await;
    // If the shell cannot be asked, the word is assumed to be valid.
    status.map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;
    use std::fs;

    const PURPOSE: &str = "run action \"charge\"";

    async fn check_words(program: &str) -> Result<(), Failure> {
        let program = Program::from_words(vec![program.into()]).expect("one word");
        program.check(PURPOSE).await
    }

    async fn check_shell(command: &str) -> Result<(), Failure> {
        Program::from_shell(command).check(PURPOSE).await
    }

    #[tokio::test]
    async fn a_program_is_looked_for_in_the_path() {
        assert_eq!(check_words("cat").await, Ok(()));
        let failure = check_words("no-such-program").await.expect_err("missing");
        expect![[r#"
            error: expected a program "no-such-program" to run action "charge", but it is not in any directory of PATH
            hint: prefix a program in the current directory with ./
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[tokio::test]
    async fn a_path_names_a_file_that_may_be_executed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("charge.sh");
        let program = path.to_str().expect("UTF-8");
        let message = |failure: Failure| failure.render(Format::Text);
        let failure = check_words(program).await.expect_err("missing");
        assert!(message(failure).contains("does not exist"));
        fs::write(&path, "#!/bin/sh\n").expect("room for a line");
        let failure = check_words(program).await.expect_err("not executable");
        assert!(message(failure).contains("executable file"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, executable).expect("a file of this test");
        assert_eq!(check_words(program).await, Ok(()));
        assert_eq!(check_shell(&format!("{program} --live")).await, Ok(()));
        assert!(
            check_words("/").await.is_err(),
            "a directory is not a program"
        );
    }

    #[tokio::test]
    async fn the_first_word_of_a_command_is_looked_for_where_it_is_plain() {
        for command in [
            "cat",
            "exit 65",
            "if true; then exit 1; fi",
            ". ./settings; charge",
            "LIVE=1 no-such-program",
            "$CHARGE",
            "(no-such-program)",
            "",
        ] {
            assert_eq!(check_shell(command).await, Ok(()), "{command}");
        }
        for command in ["no-such-program --live", "./no/such/program | cat"] {
            let failure = check_shell(command).await.expect_err(command);
            assert_eq!(failure.code(), "program_missing", "{command}");
        }
    }
}
