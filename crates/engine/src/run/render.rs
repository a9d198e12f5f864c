//! Resolving paths: input mappings, outputs and search attributes (W15, W22).

use super::open::payload;
use crate::definition::{AttributeKind, Definition, Part, Path, Root, Template};
use crate::json::{self, Json};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::store::StoreError;
use crate::tables::{AttributeValue, RunRecord};
use crate::turn::Turn;
use std::collections::BTreeMap;

/// Why a mapping gives no payload.
pub(crate) struct RenderedTooLarge {
    /// Its size when rendering stopped, in bytes.
    pub(crate) bytes: usize,
}

/// Fills a template; an unresolved path gives `null`.
pub(crate) fn render(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    template: &Template,
) -> Result<Result<Json, RenderedTooLarge>, StoreError> {
    let mut text = String::new();
    for part in &template.parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Path(path) => {
                text.push_str(&resolve(turn, run, path)?.unwrap_or_else(|| "null".to_owned()));
            }
        }
        if text.len() > PAYLOAD_BYTES_MAX {
            return Ok(Err(RenderedTooLarge { bytes: text.len() }));
        }
    }
    Ok(Ok(Json::from_checked(text)))
}

/// The JSON text that a path leads to.
fn resolve(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    path: &Path,
) -> Result<Option<String>, StoreError> {
    let root = match path.root {
        Root::Input => Some(payload(turn, run.input)?),
        Root::StepOutput(step) => match run.results.get(&step).and_then(|result| result.output) {
            Some(output) => Some(payload(turn, output)?),
            None => None,
        },
        Root::StepOutcome(step) => {
            let outcome = run.results.get(&step).map(|result| result.outcome.as_str());
            return Ok(outcome.map(|outcome| Json::string(outcome).as_str().to_owned()));
        }
        Root::RunId => return Ok(Some(Json::string(run.id.as_str()).as_str().to_owned())),
        Root::Timestamp => return Ok(Some(turn.now_ms().to_string())),
    };
    let value = root
        .as_ref()
        .and_then(|root| json::find(root.as_str(), &path.segments));
    Ok(value.map(str::to_owned))
}

/// The search attributes of a run; unresolved ones and those of another type are absent (W22).
pub(crate) fn attributes(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    definition: &Definition,
) -> Result<BTreeMap<u16, AttributeValue>, StoreError> {
    let mut values = BTreeMap::new();
    for (position, attribute) in (0..).zip(&definition.search_attributes) {
        let value = resolve(turn, run, &attribute.from)?;
        if let Some(value) = value.and_then(|value| typed(attribute.kind, &value)) {
            values.insert(position, value);
        }
    }
    Ok(values)
}

fn typed(kind: AttributeKind, value: &str) -> Option<AttributeValue> {
    match kind {
        AttributeKind::String => json::as_string(value).map(AttributeValue::String),
        AttributeKind::Number if json::is_number(value) => {
            Some(AttributeValue::Number(Json::from_checked(value.to_owned())))
        }
        AttributeKind::Number => None,
        AttributeKind::Timestamp => value.parse().ok().map(AttributeValue::Timestamp),
    }
}
