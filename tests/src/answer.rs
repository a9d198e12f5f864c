//! The result of a command.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The output and exit code of a command.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The command line, for messages.
    pub(crate) line: String,
    /// The exit code; −1 if a signal ended it.
    pub code: i32,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

/// The error of a command, as `-o json` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The exit code.
    pub exit: i32,
    /// The machine-readable code.
    pub code: String,
    /// The message: what was expected and what was found.
    pub message: String,
    /// The hint.
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
    /// The stdout of a successful command.
    ///
    /// # Panics
    /// When the command failed.
    #[must_use]
    pub fn success(self) -> String {
        assert_eq!(self.code, 0, "expected success, but {}", self.show());
        self.stdout
    }

    /// The stdout as JSON.
    ///
    /// # Panics
    /// When it failed, or printed something else.
    #[must_use]
    pub fn json(self) -> Value {
        self.decode()
    }

    /// The stdout as JSON of a known shape.
    ///
    /// # Panics
    /// When it failed, or printed something else.
    #[must_use]
    pub fn decode<T: DeserializeOwned>(self) -> T {
        assert_eq!(self.code, 0, "expected success, but {}", self.show());
        let decoded = self.decode_stdout();
        decoded.unwrap_or_else(|error| panic!("expected JSON, but {error}: {}", self.show()))
    }

    /// The stdout as JSON of a known shape, whatever the exit code is.
    ///
    /// # Errors
    /// When it printed something else.
    pub fn decode_stdout<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.stdout)
    }

    /// The error of a failed command, which must have been run with `-o json`.
    ///
    /// # Panics
    /// When it succeeded, or printed no error of the published shape.
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

    /// All of it, for messages.
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
    /// Expects this exit code and this error code.
    ///
    /// # Panics
    /// When one of them differs.
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
