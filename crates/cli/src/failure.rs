//! Failures: one sentence, a hint and an exit code.

use crate::code::Code;
use crate::output::Format;
use flotilla_client::{ClientError, ErrorKind, Violation};
use flotilla_server::{SecretFileError, ServerError};
use serde::Serialize;
use std::error::Error;
use std::io;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    code: String,
    message: String,
    hint: Option<String>,
    violations: Vec<Violation>,
}

/// The exit codes, which scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The reader of the output is gone, which is not a failure.
    Ok,
    /// What the command names does not exist.
    NotFound,
    /// A bad command line or input file.
    Usage,
    /// The server or local validation refused the request.
    Refused,
    /// A temporary failure or an unknown outcome: no leader, overload, a timeout.
    Retryable,
    /// No node could be reached.
    ConnectionFailed,
    /// This machine failed: a disk, a stream, its threads. Also a server that failed while running.
    Machine,
}

impl Failure {
    /// A failure without a hint.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            exit: code.exit(),
            code: code.as_str().to_owned(),
            message: message.into(),
            hint: None,
            violations: Vec::new(),
        }
    }

    /// A server that failed to start.
    pub(crate) fn server_start(error: &ServerError) -> Self {
        // A certificate that is invalid now may be valid later without another configuration, so a
        // supervisor should restart this node, but not one with wrong settings.
        let code = if error.is_configuration() {
            Code::ServerNotConfigured
        } else {
            Code::ServerStartFailed
        };
        Self::server(code, error)
    }

    /// A secret file that cannot be read or written.
    pub(crate) fn secret_file(error: SecretFileError) -> Self {
        let code = match error.is_configuration() {
            true => Code::FileUnreadable,
            false => Code::FileUnwritable,
        };
        Self::server(code, &ServerError::from(error))
    }

    /// A server that failed while running.
    pub(crate) fn server_end(error: &ServerError) -> Self {
        Self::server(Code::ServerFailed, error)
    }

    /// A failure with a server's code.
    #[cfg(test)]
    pub(crate) fn said(code: &str) -> Self {
        Self {
            code: code.to_owned(),
            ..Self::new(Code::OutputUnwritable, "expected something else")
        }
    }

    /// The same failure with a hint.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The same failure of a command that worked in the given namespace. If something does not exist there, the hint
    /// names the namespace: it may come from the environment.
    pub(crate) fn in_namespace(self, namespace: Option<&str>) -> Self {
        let Some(namespace) = namespace else {
            return self;
        };
        if self.exit != Exit::NotFound {
            return self;
        }
        let note = format!("this command used the namespace \"{namespace}\"");
        let hint = match &self.hint {
            Some(hint) => format!("{hint}; {note}"),
            None => note,
        };
        self.with_hint(hint)
    }

    /// The code, for programs.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The message, for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the failure to stderr and returns the exit code.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        if self.exit == Exit::Ok {
            return ExitCode::SUCCESS;
        }
        eprint!("{}", self.render(format));
        ExitCode::from(self.exit.code())
    }

    fn server(code: Code, error: &ServerError) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self {
            hint: error.hint(),
            ..Self::new(code, message)
        }
    }

    /// The text that [`Self::report`] prints.
    pub(crate) fn render(&self, format: Format) -> String {
        let error = ErrorView {
            code: &self.code,
            message: &self.message,
            hint: self.hint.as_deref(),
        };
        let report = ReportView { error };
        match format {
            Format::Text => self.render_text(),
            Format::Json => serde_json::to_string(&report)
                .map_or_else(|_| self.render_text(), |text| text + "\n"),
            Format::Yaml => serde_yaml::to_string(&report).unwrap_or_else(|_| self.render_text()),
        }
    }

    fn render_text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        // The message often includes one of the violations: skip its first occurrence, but keep
        // others with the same text.
        let mut faults = self.violations.iter();
        let told = faults.position(|fault| self.message.contains(&fault.description));
        for (position, fault) in self.violations.iter().enumerate() {
            if Some(position) == told {
                continue;
            }
            text.push_str(&format!("  {}: {}\n", fault.field, fault.description));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        text
    }
}

impl Exit {
    /// The exit code as a number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::NotFound => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Retryable => 4,
            Self::ConnectionFailed => 5,
            Self::Machine => 6,
        }
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Refused => Self::Refused,
            // A caller resolves an unknown outcome by a retry with the same key, or by reading the
            // state.
            ErrorKind::Retryable | ErrorKind::Unknown => Self::Retryable,
            ErrorKind::ConnectionFailed => Self::ConnectionFailed,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self {
            exit: error.kind().into(),
            code: error.code().to_owned(),
            message: error.message().to_owned(),
            hint: error.hint().map(ToOwned::to_owned),
            violations: error.violations().to_vec(),
        }
    }
}

/// An I/O error of stdout; every other I/O error becomes a message where it occurs.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self {
                exit: Exit::Ok,
                ..Self::new(Code::OutputUnwritable, "")
            };
        }
        Self::new(
            Code::OutputUnwritable,
            format!("expected to write to stdout, but {error}"),
        )
    }
}

#[derive(Serialize)]
struct ReportView<'a> {
    error: ErrorView<'a>,
}

#[derive(Serialize)]
struct ErrorView<'a> {
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use flotilla_server::TlsInvalid;

    fn check(format: Format, expected: Expect) {
        let failure = Failure::new(Code::RunNotCompleted, "expected an open run, but it ended")
            .with_hint("see flo workflow status");
        expected.assert_eq(&failure.render(format));
    }

    #[test]
    fn a_person_reads_a_sentence_and_a_hint() {
        check(
            Format::Text,
            expect![[r#"
                error: expected an open run, but it ended
                hint: see flo workflow status
            "#]],
        );
    }

    #[test]
    fn a_program_reads_the_published_object() {
        check(
            Format::Json,
            expect![[r#"
                {"error":{"code":"run_not_completed","message":"expected an open run, but it ended","hint":"see flo workflow status"}}
            "#]],
        );
    }

    #[test]
    fn what_does_not_exist_is_looked_for_in_the_namespace_that_was_given() {
        let failure = Failure {
            exit: Exit::NotFound,
            ..Failure::new(Code::RunNotCompleted, "expected it").with_hint("create it")
        };
        let elsewhere = failure.in_namespace(Some("shop"));
        let hint = "create it; this command used the namespace \"shop\"";
        assert_eq!(elsewhere.hint.as_deref(), Some(hint));
        let refused = Failure {
            exit: Exit::Refused,
            ..elsewhere.with_hint("wait")
        };
        assert_eq!(
            refused.in_namespace(Some("shop")).hint.as_deref(),
            Some("wait")
        );
    }

    #[test]
    fn a_cause_that_the_message_contains_is_not_repeated() {
        let fault = |field: &str, description: &str| Violation {
            field: field.to_owned(),
            description: description.to_owned(),
        };
        let message =
            "expected a valid definition, but it has 3 errors, the first of them: no name";
        let failure = Failure {
            violations: vec![
                fault("a.yaml:1:1", "no name"),
                fault("a.yaml:2:1", "no start"),
                fault("a.yaml:3:1", "no name"),
            ],
            ..Failure::new(Code::DefinitionInvalid, message)
        };
        expect![[r#"
            error: expected a valid definition, but it has 3 errors, the first of them: no name
              a.yaml:2:1: no start
              a.yaml:3:1: no name
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let codes = [
            (ErrorKind::NotFound, 1),
            (ErrorKind::Usage, 2),
            (ErrorKind::Refused, 3),
            (ErrorKind::Retryable, 4),
            (ErrorKind::Unknown, 4),
            (ErrorKind::ConnectionFailed, 5),
        ];
        for (kind, code) in codes {
            assert_eq!(Exit::from(kind).code(), code, "{kind}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_yet_valid_is_not_a_configuration_error() {
        let early = TlsInvalid::NotYetValid {
            path: "node.pem".into(),
            since: "tomorrow".to_owned(),
        };
        let failure = Failure::server_start(&ServerError::from(early));
        assert_eq!(failure.code(), "server_start_failed");
        assert_eq!(failure.exit.code(), 3);
    }

    #[test]
    fn a_closed_output_pipe_is_not_a_failure() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::from(gone).exit, Exit::Ok);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::from(full).exit.code(), 6);
    }
}
