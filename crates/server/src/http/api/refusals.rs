//! Refusals of malformed requests.

use super::route::Route;
use crate::errors::{Refusal, ServerCode};
use flotilla_api::json::JsonError;
use flotilla_dsl::nearest;

/// The refusal of a malformed header.
pub(super) fn invalid_header(message: String) -> Refusal {
    Refusal::new(ServerCode::InvalidArgument, message)
}

/// The refusal of an invalid body or parameter.
pub(super) fn invalid(error: &JsonError) -> Refusal {
    let mut message = error.to_string();
    let name = error.pointer.rsplit('/').next().unwrap_or_default();
    if let Some(meant) = nearest(name, error.known.iter().map(String::as_str)) {
        message.push_str(&format!("; did you mean `{meant}`?"));
    }
    Refusal::invalid(&error.pointer, message)
}

/// The refusal of a media type that the route does not accept, or of a body without one.
pub(super) fn unsupported(route: &Route, found: Option<&str>) -> Refusal {
    let accepted = route.media_types().join(" or ");
    let found = match found {
        Some(found) => format!("it is `{found}`"),
        None => "the header is missing".to_owned(),
    };
    let message = format!("expected `Content-Type: {accepted}`, but {found}");
    Refusal::new(ServerCode::MediaTypeUnsupported, message)
        .with_hint("with curl, add `-H 'content-type: application/json'`")
}

/// A body that is compressed.
pub(super) fn encoded() -> Refusal {
    let message = "expected a body without `Content-Encoding`, but it has one";
    Refusal::new(ServerCode::MediaTypeUnsupported, message).with_hint("send the body uncompressed")
}

/// A body that is larger than the call takes.
pub(super) fn too_large(bytes_max: usize) -> Refusal {
    let message = format!("expected a body of at most {bytes_max} bytes, but it has more");
    Refusal::too_large(message)
}

/// A response in a media type that the client does not take.
pub(super) fn not_acceptable() -> Refusal {
    let message = "expected `Accept: text/event-stream`, but the header names other media types";
    Refusal::new(ServerCode::NotAcceptable, message)
        .with_hint("for JSON, get the path that ends in /history instead of /events")
}
