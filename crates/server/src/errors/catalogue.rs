//! The catalogue of error codes, from which the manual's page of errors is made.

use super::http_status::http_status;
use super::reason::{Reason, ServerCode};
use flotilla_engine::RejectionCode;
use tonic::Code;

/// One error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// In snake case, as in `ErrorInfo.reason` and in the `code` of JSON.
    pub name: &'static str,
    /// The gRPC status.
    pub status: Code,
    /// The HTTP status.
    pub http_status: u16,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// What to do, if the code alone determines it.
    pub hint: Option<&'static str>,
}

impl ErrorCode {
    /// All codes, sorted by name.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let entry = |reason: Reason, meaning, hint| Self {
            name: reason.name,
            status: reason.status,
            http_status: http_status(reason.status, reason.name).as_u16(),
            meaning,
            hint,
        };
        let engine = RejectionCode::ALL
            .iter()
            .map(|code| entry((*code).into(), code.meaning(), code.hint()));
        let server = ServerCode::ALL
            .iter()
            .map(|code| entry((*code).into(), code.meaning(), None));
        let mut all: Vec<Self> = engine.chain(server).collect();
        all.sort_by_key(|code| code.name);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_in_both_tables() {
        let mut names: Vec<&str> = ErrorCode::all().iter().map(|code| code.name).collect();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
