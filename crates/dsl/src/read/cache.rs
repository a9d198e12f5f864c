//! The `cache` block of a plan (W37, E404, E508).

use super::{Bounds, Context, Field, Reported, field::or_default, path};
use crate::{Code, Finding, quote::quote, tree::Kind};
use flotilla_engine::{
    definition::{Cache, CacheKeyPart, Segment},
    ids::EventName,
    limits::{INVALIDATION_EVENTS_MAX, MAPPING_PATHS_MAX},
};

const TTL_MS_DEFAULT: u64 = 300_000;

/// Reads the block.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Cache, Reported> {
    let mut fields = field.fields(context)?;
    let ttl = fields.take("ttl_ms", context);
    let key = fields.take("key", context);
    let invalidate_on = fields.take("invalidate_on", context);
    let known = fields.finish(context);
    let ttl_ms = or_default(ttl, TTL_MS_DEFAULT, |field| {
        field.whole(Bounds::duration(1, Code::E404), context)
    });
    let key = match key.filter(|key| !is_empty(key)) {
        Some(key) => read_key(&key, context),
        None => {
            let message = format!(
                "expected {} to have a `key`, but it is missing or empty",
                field.place
            );
            Err(context.error(Finding::new(Code::E404, field.key_span, message)))
        }
    };
    let invalidate_on = or_default(invalidate_on, Vec::new(), |field| {
        field.names_at_most(INVALIDATION_EVENTS_MAX, EventName::new, context)
    });
    known?;
    Ok(Cache {
        ttl_ms: ttl_ms?,
        key: key?,
        invalidate_on: invalidate_on?,
    })
}

fn is_empty(key: &Field<'_>) -> bool {
    match &key.node.kind {
        Kind::Null => true,
        Kind::String(text) => text.is_empty(),
        _ => false,
    }
}

fn read_key<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<CacheKeyPart>, Reported> {
    let text = field.string(context)?;
    let parts = key_parts(text).and_then(|parts| {
        let is_few = parts.len() <= 2 * MAPPING_PATHS_MAX;
        is_few
            .then_some(parts)
            .ok_or_else(|| format!("expected at most {MAPPING_PATHS_MAX} placeholders"))
    });
    parts.map_err(|why| {
        let finding = Finding::new(
            Code::E508,
            field.span(),
            format!("invalid cache key {}: {why}", quote(text)),
        );
        context.error(finding.hint("placeholders are `{input.…}` and `{mapped.…}`"))
    })
}

/// Splits `charge:{input.customer_id}` into literals and placeholders; the error explains why it cannot.
fn key_parts(text: &str) -> Result<Vec<CacheKeyPart>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, after) = rest.split_at(rest.find(['{', '}']).unwrap_or(rest.len()));
        if !literal.is_empty() {
            parts.push(CacheKeyPart::Literal(literal.to_owned()));
        }
        rest = match after.strip_prefix('{') {
            None if after.is_empty() => after,
            None => return Err("`}` has no matching `{`".to_owned()),
            Some(after) => {
                let (hole, after) = after.split_once('}').ok_or("`{` is not closed")?;
                parts.push(hole_part(hole)?);
                after
            }
        };
    }
    Ok(parts)
}

fn hole_part(hole: &str) -> Result<CacheKeyPart, String> {
    let mut segments = path::segments(hole.strip_prefix("$.").unwrap_or(hole))?.into_iter();
    match segments.next() {
        Some(Segment::Field(root)) if root == "input" => {
            Ok(CacheKeyPart::Input(segments.collect()))
        }
        Some(Segment::Field(root)) if root == "mapped" => {
            Ok(CacheKeyPart::Mapped(segments.collect()))
        }
        _ => Err(format!(
            "{} begins with neither `input` nor `mapped`",
            quote(hole)
        )),
    }
}
