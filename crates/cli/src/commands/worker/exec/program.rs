//! What to run.

use std::ffi::OsString;
use tokio::process::Command;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: OsString,
    arguments: Vec<OsString>,
}

impl Program {
    /// The words of a command line; none, when there are none.
    pub(super) fn from_words(words: Vec<OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        Some(Self {
            path: words.next()?,
            arguments: words.collect(),
        })
    }

    /// A command for the shell.
    pub(super) fn from_shell(command: &str) -> Self {
        Self {
            path: "sh".into(),
            arguments: vec!["-c".into(), command.into()],
        }
    }

    /// A process to come.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }

    /// The program's name, for messages.
    pub(super) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}
