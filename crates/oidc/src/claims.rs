//! The claims of a token (X12).

use crate::rules::{GROUPS_BYTES_MAX, GROUPS_MAX, LEEWAY_SECONDS, NAME_BYTES_MAX, Rules};
use crate::token::{TokenFault, TokenInvalid};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The claims of a token, as they are written.
pub(crate) type Claims = Map<String, Value>;

/// What a token proves about its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The subject: 1 to 256 bytes without control characters.
    pub subject: String,
    /// The groups that count, each as the subject, in order and without repetition: at most [`GROUPS_MAX`] of at most
    /// [`GROUPS_BYTES_MAX`] bytes together.
    pub groups: Vec<String>,
    /// When the proof ends, in milliseconds since 1970: `exp` and the leeway.
    pub ends_at_ms: u64,
}

/// The issuer that the claims name.
pub(crate) fn issuer(claims: &Claims) -> Result<&str, TokenInvalid> {
    let issuer = claims.get("iss").and_then(Value::as_str);
    issuer.ok_or_else(|| TokenInvalid::malformed("iss", "expected `iss` to be text, but it is not"))
}

/// Checks verified claims at `now_ms`.
pub(crate) fn check(claims: &Claims, rules: &Rules, now_ms: u64) -> Result<Proof, TokenInvalid> {
    if issuer(claims)? != rules.issuer {
        return Err(unknown(
            "iss",
            "expected `iss` to be the issuer, but it is another",
        ));
    }
    check_audience(claims, rules)?;
    let ends_at_seconds = check_times(claims, rules, now_ms / 1_000)?;
    for (name, expected) in &rules.require {
        let is_met = find(claims, name).is_some_and(|found| has(found, expected));
        if !is_met {
            let text = format!("expected `{name}` to be what is configured, but it is not");
            return Err(TokenInvalid::new(TokenFault::Unknown, name.clone(), text));
        }
    }
    Ok(Proof {
        subject: subject(claims, rules)?,
        groups: groups(claims, rules)?,
        ends_at_ms: ends_at_seconds.saturating_mul(1_000),
    })
}

fn check_audience(claims: &Claims, rules: &Rules) -> Result<(), TokenInvalid> {
    let audience = claims.get("aud");
    let is_text = |value: &Value| value.is_string();
    let is_valid = match audience {
        Some(Value::Array(items)) => items.iter().all(is_text),
        Some(value) => is_text(value),
        None => false,
    };
    if !is_valid {
        let text = "expected `aud` to be text or a list of texts, but it is not";
        return Err(TokenInvalid::malformed("aud", text));
    }
    let expected = Value::String(rules.audience.clone());
    match audience.is_some_and(|found| has(found, &expected)) {
        true => Ok(()),
        false => Err(unknown(
            "aud",
            "expected `aud` to be the audience, but it is another",
        )),
    }
}

/// When the token ends, the leeway included, in seconds.
fn check_times(claims: &Claims, rules: &Rules, now: u64) -> Result<u64, TokenInvalid> {
    let Some(expires_at) = time(claims, "exp")? else {
        return Err(TokenInvalid::malformed(
            "exp",
            "expected `exp`, but it is not given",
        ));
    };
    let ends_at = expires_at.saturating_add(LEEWAY_SECONDS);
    if ends_at <= now {
        let text = "expected a token that is valid, but it has expired";
        return Err(TokenInvalid::new(TokenFault::Expired, "exp", text));
    }
    let latest = now.saturating_add(LEEWAY_SECONDS);
    if expires_at > latest.saturating_add(rules.ttl_seconds_max) {
        let max = rules.ttl_seconds_max;
        let text = format!(
            "expected `exp` within {max} s, the `max_ttl_s` of its issuer, but it is later"
        );
        return Err(unknown("exp", text));
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|time| time > latest) {
            let text = format!("expected `{name}` to be past, but it is in the future");
            return Err(unknown(name, text));
        }
    }
    Ok(ends_at)
}

/// A time of the claims, in whole seconds since 1970.
fn time(claims: &Claims, name: &'static str) -> Result<Option<u64>, TokenInvalid> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = value.as_u64().or_else(|| whole_seconds(value.as_f64()?));
    let text = || format!("expected `{name}` to be a time in seconds, but it is not");
    seconds
        .map(Some)
        .ok_or_else(|| TokenInvalid::malformed(name, text()))
}

/// The whole seconds of a time with a fraction. Its text is used since no cast of a float is exact.
fn whole_seconds(seconds: f64) -> Option<u64> {
    format!("{:.0}", seconds.floor()).parse().ok()
}

fn subject(claims: &Claims, rules: &Rules) -> Result<String, TokenInvalid> {
    let name = &rules.subject_claim;
    let subject = find(claims, name).and_then(Value::as_str);
    let subject = subject.filter(|subject| is_name(subject)).ok_or_else(|| {
        let text = format!(
            "expected `{name}` to be text of 1 to {NAME_BYTES_MAX} bytes without control characters, but it is not"
        );
        TokenInvalid::malformed(name.clone(), text)
    })?;
    Ok(subject.to_owned())
}

/// The groups that count. A group that no binding can name is left out.
fn groups(claims: &Claims, rules: &Rules) -> Result<Vec<String>, TokenInvalid> {
    let name = &rules.groups_claim;
    let malformed = |found: &str| {
        let text = format!("expected `{name}` to be a list of texts, or one text, but {found}");
        TokenInvalid::malformed(name.clone(), text)
    };
    let items = match find(claims, name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => &items[..],
        Some(item) => std::slice::from_ref(item),
    };
    let mut groups = BTreeSet::new();
    for item in items {
        let group = item
            .as_str()
            .ok_or_else(|| malformed("it is something else"))?;
        if is_name(group) && rules.counts(group) {
            groups.insert(group);
        }
    }
    let bytes: usize = groups.iter().map(|group| group.len()).sum();
    if groups.len() > GROUPS_MAX || bytes > GROUPS_BYTES_MAX {
        let text = format!(
            "expected at most {GROUPS_MAX} groups of {GROUPS_BYTES_MAX} bytes together in `{name}`, but there are {} of {bytes} bytes",
            groups.len()
        );
        return Err(TokenInvalid::malformed(name.clone(), text));
    }
    Ok(groups.into_iter().map(str::to_owned).collect())
}

/// A claim. A name that begins with `/` is a path through nested objects.
fn find<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
    let Some(path) = name.strip_prefix('/') else {
        return claims.get(name);
    };
    let mut parts = path.split('/');
    let first = claims.get(parts.next()?);
    parts.fold(first, |found, part| found?.as_object()?.get(part))
}

/// Whether a claim is the expected value, or a list that contains it.
fn has(found: &Value, expected: &Value) -> bool {
    match found {
        Value::Array(items) => items.contains(expected),
        one => one == expected,
    }
}

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn unknown(claim: &'static str, text: impl Into<String>) -> TokenInvalid {
    TokenInvalid::new(TokenFault::Unknown, claim, text)
}
