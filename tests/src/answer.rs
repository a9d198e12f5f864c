//! What a command answered.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a command printed, and its exit code.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The command line, for messages.
    pub(crate) line: String,
    /// The exit code; −1 when a signal ended it.
    pub code: i32,
    /// What it printed to stdout.
    pub stdout: String,
    /// What it printed to stderr.
    pub stderr: String,
}

/// The error that a command ended with, as `-o json` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The exit code.
    pub exit: i32,
    /// The reason, for programs.
    pub code: String,
    /// What was expected and what was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

#[derive(Deserialize)]
struct Report {
    error: ReportedError,
}

#[derive(Deserialize)]
struct ReportedError {
    code: String,
    message: String,
    hint: Option<String>,
}

impl Answer {
    /// What it printed.
    ///
    /// # Panics
    /// When it failed.
    #[must_use]
    pub fn success(self) -> String {
        assert_eq!(self.code, 0, "expected success, but {}", self.show());
        self.stdout
    }

    /// What it printed, as JSON.
    ///
    /// # Panics
    /// When it failed, or printed something else.
    #[must_use]
    pub fn json(self) -> Value {
        self.decode()
    }

    /// What it printed, as JSON of a known shape.
    ///
    /// # Panics
    /// When it failed, or printed something else.
    #[must_use]
    pub fn decode<T: DeserializeOwned>(self) -> T {
        assert_eq!(self.code, 0, "expected success, but {}", self.show());
        let decoded = self.decode_stdout();
        decoded.unwrap_or_else(|error| panic!("expected JSON, but {error}: {}", self.show()))
    }

    /// What it printed, as JSON of a known shape, whatever its exit code.
    ///
    /// # Errors
    /// When it printed something else.
    pub fn decode_stdout<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.stdout)
    }

    /// The error that it ended with; the command must have been run with `-o json`.
    ///
    /// # Panics
    /// When it succeeded, or did not say what went wrong, in the form of all messages.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        assert_ne!(self.code, 0, "expected a refusal, but {}", self.show());
        let last = self.stderr.lines().last().unwrap_or_default();
        let report: Report = serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("expected an error, but {error}: {}", self.show()));
        Refusal {
            exit: self.code,
            code: report.error.code,
            message: report.error.message,
            hint: report.error.hint,
        }
    }

    /// Everything, for messages.
    #[must_use]
    pub fn show(&self) -> String {
        let Self {
            line,
            code,
            stdout,
            stderr,
        } = self;
        format!("`{line}` exited with {code}\nstdout: {stdout}\nstderr: {stderr}")
    }
}

impl Refusal {
    /// Expects this exit code and this reason.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect(&self, exit: i32, code: &str) -> &Self {
        assert_eq!((self.exit, self.code.as_str()), (exit, code), "{self:?}");
        self
    }

    /// Expects the message to contain a text.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.message.contains(text), "`{text}` in {self:?}");
        self
    }

    /// Expects the hint to contain a text.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn hints(&self, text: &str) -> &Self {
        let hint = self.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(text), "`{text}` in the hint of {self:?}");
        self
    }
}
