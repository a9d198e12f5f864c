//! Reads the values in a query.

use super::QueryInvalid;
use super::token::{Kind, Token};
use crate::quote::cut;
use chrono::DateTime;
use flotilla_engine::AttributeValue;
use flotilla_engine::json::Json;

const TIME_HINT: &str = "a time is milliseconds since 1970, or RFC 3339 as in 2026-01-31T09:00:00Z";

/// A time in milliseconds since the Unix epoch; earlier times count as the epoch.
pub(super) fn time(text: &str, value: &Token<'_>) -> Result<u64, QueryInvalid> {
    let found = match &value.kind {
        Kind::String(content) => rfc_3339(content),
        Kind::Number(word) => word.parse().ok().or_else(|| rfc_3339(word)),
        Kind::Name(_) | Kind::Comparison(_) => None,
    };
    let found = found.ok_or_else(|| {
        let word = cut(&text[value.place.clone()]);
        let message = format!("expected a time, but found {word}");
        QueryInvalid::new(text, value.place.clone(), message).hint(TIME_HINT)
    })?;
    Ok(u64::try_from(found).unwrap_or(0))
}

/// The possible meanings of a value for a search attribute, whose type the query does not know.
pub(super) fn values(text: &str, value: &Token<'_>) -> Result<Vec<AttributeValue>, QueryInvalid> {
    let refused = |message: String| QueryInvalid::new(text, value.place.clone(), message);
    match &value.kind {
        Kind::String(content) => {
            let time = rfc_3339(content).map(AttributeValue::Timestamp);
            let string = AttributeValue::String(content.clone());
            Ok([Some(string), time].into_iter().flatten().collect())
        }
        Kind::Number(word) if is_number(word) => {
            let time = word.parse().ok().map(AttributeValue::Timestamp);
            let number = AttributeValue::Number(Json::from_checked((*word).to_owned()));
            Ok([Some(number), time].into_iter().flatten().collect())
        }
        Kind::Number(word) => match rfc_3339(word) {
            Some(at_ms) => Ok(vec![AttributeValue::Timestamp(at_ms)]),
            None => {
                let message = format!("expected a number or a time, but found {}", cut(word));
                Err(refused(message).hint(TIME_HINT))
            }
        },
        Kind::Name(word @ ("true" | "false")) => {
            let message = format!("expected a string, a number or a time, but found {word}");
            Err(refused(message).hint("search attributes cannot be booleans: store it as a string"))
        }
        Kind::Name(word) => {
            let word = cut(word);
            let message = format!("expected a value, but found `{word}`");
            Err(refused(message).hint(format!("put strings in single quotes: '{word}'")))
        }
        Kind::Comparison(_) => {
            let word = &text[value.place.clone()];
            Err(refused(format!("expected a value, but found `{word}`")))
        }
    }
}

fn rfc_3339(text: &str) -> Option<i64> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(time.timestamp_millis())
}

/// Whether the word is a JSON number.
fn is_number(word: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(word).is_ok()
}
