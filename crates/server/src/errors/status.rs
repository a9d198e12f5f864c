//! Refusals on the wire: a status with details, or an item of a batch.

use super::refusal::{Refusal, Violation};
use crate::limits::{STATUS_MESSAGE_BYTES_MAX, STATUS_VIOLATIONS_BYTES_MAX};
use flotilla_api::v1;
use std::collections::HashMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

/// The domain in `ErrorInfo`.
const DOMAIN: &str = "flotilla";
/// The key of the hint in `ErrorInfo`.
pub(crate) const HINT: &str = "hint";
/// The key of the cluster's time in `ErrorInfo`.
pub(crate) const CLUSTER_MS: &str = "cluster_ms";
/// The key, in `ErrorInfo`, of what a quota that does not suffice limits (X40).
pub(crate) const QUOTA_DIMENSION: &str = "dimension";
/// The key of its limit.
pub(crate) const QUOTA_LIMIT: &str = "limit";
/// The key of what is used of it.
pub(crate) const QUOTA_USED: &str = "used";
/// The key of the namespace or tree that it belongs to.
pub(crate) const QUOTA_SCOPE: &str = "scope";

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let mut details = ErrorDetails::new();
        let mut metadata = HashMap::new();
        if let Some(hint) = refusal.hint {
            metadata.insert(HINT.to_owned(), hint.to_owned());
        }
        if let Some(cluster_ms) = refusal.cluster_ms {
            metadata.insert(CLUSTER_MS.to_owned(), cluster_ms.to_string());
        }
        if let Some(quota) = &refusal.quota {
            let mut insert = |key: &str, value: String| metadata.insert(key.to_owned(), value);
            insert(QUOTA_DIMENSION, quota.dimension.to_string());
            insert(QUOTA_LIMIT, quota.limit.to_string());
            insert(QUOTA_USED, quota.used.to_string());
            insert(QUOTA_SCOPE, quota.scope.to_string());
        }
        details.set_error_info(refusal.reason, DOMAIN, metadata);
        if !refusal.violations.is_empty() {
            details.set_bad_request(violations(refusal.violations));
        }
        if refusal.retry_delay.is_some() {
            details.set_retry_info(refusal.retry_delay);
        }
        let message = cut(&refusal.message, STATUS_MESSAGE_BYTES_MAX);
        Self::with_error_details(refusal.code, message, details)
    }
}

impl Refusal {
    /// The refusal as an item of a batch, or as the response to a message of a stream.
    pub(crate) fn item_error(&self) -> v1::ItemError {
        let delay = self.retry_delay.unwrap_or_default();
        v1::ItemError {
            grpc_status: code_number(self.code),
            code: self.reason.to_owned(),
            message: cut(&self.message, STATUS_MESSAGE_BYTES_MAX).to_owned(),
            hint: self.hint.unwrap_or_default().to_owned(),
            retry_delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// As many violations as fit: they travel in a header.
fn violations(violations: Vec<Violation>) -> Vec<FieldViolation> {
    let mut bytes_left = STATUS_VIOLATIONS_BYTES_MAX;
    let mut fitting = Vec::new();
    for Violation { field, description } in violations {
        let field = cut(&field, bytes_left).to_owned();
        let description = cut(&description, bytes_left - field.len()).to_owned();
        if description.is_empty() {
            break;
        }
        bytes_left -= field.len() + description.len();
        fitting.push(FieldViolation::new(field, description));
    }
    fitting
}

/// The longest prefix of `text` with at most `bytes_max` bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

fn code_number(code: Code) -> i32 {
    code as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::ServerCode;
    use flotilla_engine::RejectionCode;
    use std::time::Duration;

    #[test]
    fn a_status_carries_reason_hint_field_and_delay() {
        let refusal = Refusal::new(ServerCode::Overloaded, "too much")
            .with_hint("wait")
            .at("input")
            .after(Duration::from_millis(250));
        let status = Status::from(refusal);
        assert_eq!(
            (status.code(), status.message()),
            (Code::ResourceExhausted, "too much")
        );
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            ("overloaded", "flotilla")
        );
        assert_eq!(info.metadata["hint"], "wait");
        let violation = &details.bad_request().unwrap().field_violations[0];
        assert_eq!(
            (violation.field.as_str(), violation.description.as_str()),
            ("input", "too much")
        );
        let delay = details.retry_info().unwrap().retry_delay;
        assert_eq!(delay, Some(Duration::from_millis(250)));
    }

    #[test]
    fn a_plain_status_has_no_details_but_the_reason() {
        let details =
            Status::from(Refusal::new(RejectionCode::RunNotFound, "no")).get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "run_not_found");
        assert!(details.bad_request().is_none() && details.retry_info().is_none());
        assert!(details.error_info().unwrap().metadata.is_empty());
    }

    #[test]
    fn an_item_says_the_same_as_a_status() {
        let refusal = Refusal::overloaded("too much");
        let item = refusal.item_error();
        assert_eq!(item.grpc_status, 8);
        assert_eq!(
            (item.code.as_str(), item.message.as_str()),
            ("overloaded", "too much")
        );
        assert_eq!(item.retry_delay_ms, 200);
        assert!(!item.hint.is_empty());
    }

    #[test]
    fn a_refusal_of_any_size_fits_into_the_headers() {
        let violation = Violation {
            field: "é".repeat(300),
            description: "ü".repeat(900),
        };
        let refusal = Refusal::new(ServerCode::DefinitionInvalid, "ä".repeat(9_999))
            .with_violations(vec![violation; 100]);
        let status = Status::from(refusal);
        assert!(status.message().len() <= STATUS_MESSAGE_BYTES_MAX);
        let details_bytes_max = STATUS_MESSAGE_BYTES_MAX + STATUS_VIOLATIONS_BYTES_MAX + 512;
        assert!(status.details().len() < details_bytes_max);
        assert_eq!(
            status
                .get_details_bad_request()
                .unwrap()
                .field_violations
                .len(),
            2
        );
    }
}
