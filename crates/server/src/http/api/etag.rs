//! Entity tags: reads that skip a known response, and writes that expect a version (H10).

use super::refusals::invalid_header;
use super::transcoder::Call;
use crate::errors::Refusal;
use crate::request::hex;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use prost_reflect::DynamicMessage;
use sha2::{Digest, Sha256};

/// The tags that a header may list.
const TAGS_MAX: usize = 8;
/// Matches any tag.
const ANY: &str = "*";
/// The bytes of a digest that make a tag.
const DIGEST_BYTES: usize = 16;

/// The tags of responses that the caller of a read already has. A response with one of them is not sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownTags {
    /// With their quotation marks.
    tags: Vec<String>,
    is_any: bool,
}

impl KnownTags {
    /// Reads the conditions in the headers. Those of a write become fields of its request.
    ///
    /// # Errors
    /// A header is malformed, or the call does not support the condition.
    pub(super) fn of(headers: &HeaderMap, call: &mut Call) -> Result<Self, Refusal> {
        let matching = listed(headers, &IF_MATCH)?;
        let not_matching = listed(headers, &IF_NONE_MATCH)?;
        if matching.is_some() && not_matching.is_some() {
            let text = "expected `If-Match` or `If-None-Match`, but the request has both";
            return Err(invalid_header(text.to_owned()));
        }
        if let Some(tags) = matching {
            let version = version(&tags)?;
            let field = call.route.if_match.clone();
            set(call, field, (&IF_MATCH, &version))?;
        }
        let Some(tags) = not_matching else {
            return Ok(Self::default());
        };
        if call.route.is_read() {
            return Ok(Self {
                is_any: tags == [ANY],
                tags,
            });
        }
        if tags != [ANY] {
            let text = "expected `If-None-Match: *` with a change, but the header lists tags";
            return Err(invalid_header(text.to_owned()));
        }
        let field = call.route.if_none_match.clone();
        set(call, field, (&IF_NONE_MATCH, "true"))?;
        Ok(Self::default())
    }

    /// Whether the caller already has the response with this tag.
    pub(super) fn contain(&self, tag: &HeaderValue) -> bool {
        self.is_any || self.tags.iter().any(|known| known.as_str() == tag)
    }
}

/// The tag of a response: the version in its message if the route has one, or else the digest of the text of a read.
pub(super) fn tag(call: &Call, message: &DynamicMessage, text: &[u8]) -> Option<HeaderValue> {
    let value = match &call.route.etag {
        Some(path) => number(message, path)?.to_string(),
        None if call.route.is_read() => digest(text),
        None => return None,
    };
    HeaderValue::try_from(format!("\"{value}\"")).ok()
}

fn number(message: &DynamicMessage, path: &str) -> Option<u64> {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let value = message.get_field_by_name(first)?;
    match rest {
        Some(rest) => number(value.as_message()?, rest),
        None => value.as_u64(),
    }
}

fn digest(text: &[u8]) -> String {
    hex(&Sha256::digest(text)[..DIGEST_BYTES])
}

/// The tags in a header: strong ones with their quotation marks, or only `*`.
fn listed(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Vec<String>>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let refused = || {
        invalid_header(format!(
            "expected one header `{name}` with `*` or with 1 to {TAGS_MAX} entity tags in quotation marks, but it has another value"
        ))
    };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    let text = text.ok_or_else(refused)?;
    let tags: Vec<String> = text.split(',').map(|tag| tag.trim().to_owned()).collect();
    let is_valid = tags == [ANY] || tags.iter().all(|tag| is_strong(tag));
    if !is_valid || tags.len() > TAGS_MAX {
        return Err(refused());
    }
    Ok(Some(tags))
}

fn is_strong(tag: &str) -> bool {
    let inner = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains('"'))
}

/// The version that a change expects.
fn version(tags: &[String]) -> Result<String, Refusal> {
    let version = match tags {
        [tag] => tag.trim_matches('"').parse::<u64>().ok(),
        _ => None,
    };
    let version = version.ok_or_else(|| {
        let text = "expected `If-Match` with one tag, the `ETag` of an earlier response, but it has another value";
        invalid_header(text.to_owned())
    })?;
    Ok(version.to_string())
}

/// Sets the field of the request that a header determines.
fn set(
    call: &mut Call,
    field: Option<String>,
    (header, value): (&HeaderName, &str),
) -> Result<(), Refusal> {
    let field = field.ok_or_else(|| {
        invalid_header(format!(
            "expected no header `{header}`, because this call does not support it, but the request has one"
        ))
    })?;
    call.set(&field, value)?;
    call.is_conditional = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::api::route::Route;
    use prost_reflect::Value;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn call(name: &str) -> Call {
        let routes = Route::all();
        let route = routes
            .into_iter()
            .find(|route| route.call_path.ends_with(name))
            .expect("it has a route");
        Call::new(Arc::new(route))
    }

    fn read(
        name: &str,
        headers: &[(HeaderName, &'static str)],
    ) -> Result<(Call, KnownTags), String> {
        let mut call = call(name);
        let headers = headers.iter().cloned();
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let headers: HeaderMap = headers.collect();
        let known = KnownTags::of(&headers, &mut call).map_err(|refusal| refusal.to_string())?;
        Ok((call, known))
    }

    #[test]
    fn the_conditions_of_a_write_become_fields() {
        let field = |call: &Call, name| {
            call.request
                .get_field_by_name(name)
                .map(|value| value.into_owned())
        };
        let (call, _) = read("/SetKey", &[(IF_MATCH, "\"7\"")]).unwrap();
        assert_eq!(field(&call, "if_version"), Some(Value::U64(7)));
        assert!(call.is_conditional);
        assert_eq!(call.given, BTreeSet::from(["if_version".to_owned()]));
        let (call, _) = read("/SetKey", &[(IF_NONE_MATCH, "*")]).unwrap();
        assert_eq!(field(&call, "if_absent"), Some(Value::Bool(true)));
        for (name, headers) in [
            ("/SetKey", &[(IF_MATCH, "7")][..]),
            ("/SetKey", &[(IF_MATCH, "W/\"7\"")]),
            ("/SetKey", &[(IF_MATCH, "*")]),
            ("/SetKey", &[(IF_MATCH, "\"7\", \"8\"")]),
            ("/SetKey", &[(IF_NONE_MATCH, "\"7\"")]),
            ("/SetKey", &[(IF_MATCH, "\"7\""), (IF_NONE_MATCH, "*")]),
            ("/StartRun", &[(IF_MATCH, "\"7\"")]),
            ("/StartRun", &[(IF_NONE_MATCH, "*")]),
            ("/GetRun", &[(IF_MATCH, "\"7\"")]),
        ] {
            assert!(read(name, headers).is_err(), "{name} {headers:?}");
        }
    }

    #[test]
    fn a_read_without_a_version_is_tagged_with_its_digest() {
        let (call, known) = read("/GetRun", &[(IF_NONE_MATCH, "\"a\", \"b\"")]).unwrap();
        let message = DynamicMessage::new(call.route.response.clone());
        let one = tag(&call, &message, b"one").unwrap();
        assert_ne!(tag(&call, &message, b"two").unwrap(), one);
        assert!(!known.contain(&one));
        assert!(known.contain(&HeaderValue::from_static("\"b\"")));
        let (_, any) = read("/GetRun", &[(IF_NONE_MATCH, "*")]).unwrap();
        assert!(any.contain(&one));
        let many = "\"a\",".repeat(TAGS_MAX) + "\"a\"";
        let headers = HeaderMap::from_iter([(IF_NONE_MATCH, many.parse().unwrap())]);
        assert!(listed(&headers, &IF_NONE_MATCH).is_err());
    }

    #[test]
    fn a_key_is_tagged_with_its_version() {
        let call = call("/GetKey");
        let mut message = DynamicMessage::new(call.route.response.clone());
        let item = message.get_field_by_name("item").unwrap().into_owned();
        let Value::Message(mut item) = item else {
            panic!("expected a message")
        };
        item.set_field_by_name("version", Value::U64(12));
        message.set_field_by_name("item", Value::Message(item));
        assert_eq!(tag(&call, &message, b"").unwrap(), "\"12\"");
    }
}
