//! Why a call failed, by what the caller can do about it.

use crate::code::ClientCode;
use flotilla_api::v1;
use std::error::Error;
use std::fmt;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// The metadata key of an error's hint.
const HINT: &str = "hint";
/// The code of a request that a quota refuses (X40).
const QUOTA_EXCEEDED: &str = "quota_exceeded";
/// The metadata key of what that quota limits.
const DIMENSION: &str = "dimension";

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ClientError {
    kind: ErrorKind,
    code: String,
    message: String,
    hint: Option<String>,
    violations: Vec<Violation>,
}

/// What the caller can do about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What the request names does not exist.
    NotFound,
    /// The request is malformed: change it.
    Usage,
    /// The state of the cluster forbids it.
    Refused,
    /// A temporary failure: try again later. The request was not applied.
    Retryable,
    /// No response arrived: the request may have been applied, or may still be (design rule 9).
    /// Retry with the same request id, or read the state.
    Unknown,
    /// Could not connect to any node.
    ConnectionFailed,
}

/// One fault of a malformed request or an invalid definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field.
    pub field: String,
    /// What is wrong there.
    pub description: String,
}

impl ClientError {
    /// An error that this crate detects.
    #[must_use]
    pub fn new(code: ClientCode, message: impl Into<String>) -> Self {
        Self {
            kind: code.kind(),
            code: code.as_str().to_owned(),
            message: message.into(),
            hint: None,
            violations: Vec::new(),
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The rejection's code in snake case, such as `run_not_found`; for programs.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// One sentence, `expected to …, but …`; for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, if known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The individual faults, if the server lists them.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Whether a later retry may help, whatever the result of this attempt.
    pub(crate) fn is_passing(&self) -> bool {
        match self.kind {
            ErrorKind::Retryable | ErrorKind::Unknown | ErrorKind::ConnectionFailed => true,
            ErrorKind::NotFound | ErrorKind::Usage | ErrorKind::Refused => false,
        }
    }

    pub(crate) fn from_status(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        if info.is_none() && status.code() == Code::OutOfRange {
            return Self::message_too_large(status.message());
        }
        let violations = details.bad_request().map_or_else(Vec::new, |request| {
            let violation = |fault: &tonic_types::FieldViolation| Violation {
                field: fault.field.clone(),
                description: fault.description.clone(),
            };
            request.field_violations.iter().map(violation).collect()
        });
        Self {
            kind: kind_of(status),
            code: info.map_or_else(|| code_name(status.code()), |info| info.reason.clone()),
            message: sentence(status),
            hint: info.and_then(|info| info.metadata.get(HINT).cloned()),
            violations,
        }
    }

    /// gRPC refuses a message beyond its limit before a service sees it.
    fn message_too_large(found: &str) -> Self {
        let found = found.trim_start_matches("Error, ");
        Self::new(
            ClientCode::MessageTooLarge,
            format!("expected a smaller message, but gRPC refused it: {found}"),
        )
        .with_hint("store large data elsewhere and pass a reference to it")
    }

    pub(crate) fn from_item(item: &v1::ItemError) -> Self {
        let status = Code::from_i32(item.grpc_status);
        let is_named = !item.code.is_empty();
        Self {
            kind: ErrorKind::of_status(status),
            code: if is_named {
                item.code.clone()
            } else {
                code_name(status)
            },
            message: item.message.clone(),
            hint: Some(item.hint.clone()).filter(|hint| !hint.is_empty()),
            violations: Vec::new(),
        }
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Whether a quota refuses the request, and may allow it later without a change: a rate has room again after a time, and what
/// is open ends (X40).
pub(crate) fn quota_kind(status: &Status) -> Option<ErrorKind> {
    let details = status.get_error_details();
    let info = details.error_info()?;
    if info.reason != QUOTA_EXCEEDED {
        return None;
    }
    let dimension = info.metadata.get(DIMENSION);
    let is_open = dimension.is_some_and(|dimension| dimension.starts_with("open_"));
    Some(match details.retry_info().is_some() || is_open {
        true => ErrorKind::Retryable,
        false => ErrorKind::Refused,
    })
}

fn kind_of(status: &Status) -> ErrorKind {
    quota_kind(status).unwrap_or_else(|| ErrorKind::of_status(status.code()))
}

impl ErrorKind {
    /// The kind of a gRPC status.
    #[must_use]
    pub fn of_status(code: Code) -> Self {
        match code {
            Code::NotFound => Self::NotFound,
            Code::InvalidArgument | Code::OutOfRange => Self::Usage,
            Code::ResourceExhausted | Code::Unavailable => Self::Retryable,
            Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => Self::Unknown,
            Code::Ok
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated => Self::Refused,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::Usage => "usage",
            Self::Refused => "refused",
            Self::Retryable => "retryable",
            Self::Unknown => "unknown",
            Self::ConnectionFailed => "cannot connect",
        })
    }
}

/// The gRPC code in snake case, used if the server gave no reason.
fn code_name(code: Code) -> String {
    let mut name = String::new();
    for character in format!("{code:?}").chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

fn sentence(status: &Status) -> String {
    if status.message().is_empty() {
        return format!(
            "expected a response, but the server only reported: {}",
            status.code()
        );
    }
    status.message().to_owned()
}

/// The error's message, followed by those of its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::time::Duration;
    use tonic_types::ErrorDetails;

    #[test]
    fn only_a_rate_and_what_is_open_may_have_room_later() {
        let kind = |dimension: &str, delay: Option<Duration>| {
            let mut details = ErrorDetails::new();
            let metadata = HashMap::from([("dimension".to_owned(), dimension.to_owned())]);
            details.set_error_info("quota_exceeded", "flotilla", metadata);
            if delay.is_some() {
                details.set_retry_info(delay);
            }
            let status = Status::with_error_details(Code::ResourceExhausted, "full", details);
            ClientError::from_status(&status).kind()
        };
        let delay = Some(Duration::from_secs(3));
        assert_eq!(kind("starts_per_minute", delay), ErrorKind::Retryable);
        assert_eq!(kind("open_runs", None), ErrorKind::Retryable);
        assert_eq!(kind("workflows", None), ErrorKind::Refused);
        assert_eq!(kind("starts_per_minute", None), ErrorKind::Refused);
    }

    #[test]
    fn a_rich_status_keeps_reason_hint_and_violations() {
        let mut details = ErrorDetails::with_bad_request_violation("definition:3:5", "E201");
        let hint = HashMap::from([(HINT.to_owned(), "name a step".to_owned())]);
        details.set_error_info("definition_invalid", "flotilla", hint);
        let status = Status::with_error_details(Code::FailedPrecondition, "expected …", details);

        let error = ClientError::from_status(&status);

        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(error.code(), "definition_invalid");
        assert_eq!(error.hint(), Some("name a step"));
        let expected = Violation {
            field: "definition:3:5".to_owned(),
            description: "E201".to_owned(),
        };
        assert_eq!(error.violations(), [expected]);
    }

    #[test]
    fn a_message_beyond_the_limit_of_grpc_is_too_large() {
        let text = "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes";
        let error = ClientError::from_status(&Status::out_of_range(text));
        assert_eq!(
            (error.code(), error.kind()),
            ("message_too_large", ErrorKind::Usage)
        );
        assert_eq!(
            error.message(),
            "expected a smaller message, but gRPC refused it: decoded message length too large: found 9 bytes, the limit is: 8 bytes"
        );
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_bare_status_is_named_by_its_code() {
        let error = ClientError::from_status(&Status::new(Code::DeadlineExceeded, ""));
        assert_eq!(error.code(), "deadline_exceeded");
        assert_eq!(error.kind(), ErrorKind::Unknown);
    }
}
