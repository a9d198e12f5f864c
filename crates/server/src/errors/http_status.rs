//! The HTTP statuses of errors (H6).

use axum::http::StatusCode;
use tonic::Code;

/// The HTTP status for an error: some codes have a dedicated one, the others that of their gRPC status.
pub(crate) fn http_status(code: Code, reason: &str) -> StatusCode {
    match reason {
        "definition_invalid" | "input_invalid" | "idempotency_key_missing" => {
            return StatusCode::UNPROCESSABLE_ENTITY;
        }
        "not_acceptable" => return StatusCode::NOT_ACCEPTABLE,
        "uri_too_long" => return StatusCode::URI_TOO_LONG,
        "too_large" => return StatusCode::PAYLOAD_TOO_LARGE,
        "body_timeout" => return StatusCode::REQUEST_TIMEOUT,
        "method_not_allowed" => return StatusCode::METHOD_NOT_ALLOWED,
        "media_type_unsupported" => return StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "precondition_required" => return StatusCode::PRECONDITION_REQUIRED,
        "host_unknown" => return StatusCode::MISDIRECTED_REQUEST,
        _ => {}
    }
    match code {
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::FailedPrecondition | Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
