//! Search attributes (W22): computed when a run begins and again when it ends.

use super::render::{self, DataContext, TooMuchRead};
use crate::definition::{AttributeKind, Root};
use crate::ids::ScopeNumber;
use crate::json::{self, Json};
use crate::limits::{ATTRIBUTE_BYTES_MAX, ATTRIBUTES_BYTES_MAX};
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::AttributeValue;
use crate::turn::{LoadedRun, Turn};
use std::collections::BTreeMap;

/// Computes the run's search attributes, as a scope sees them. Unresolved values and values of another type are absent;
/// values that are too large are absent too, and the returned note says so.
pub(super) fn compute(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
) -> Result<Option<String>, StoreError> {
    let definition = run.definition.clone();
    let attributes = &definition.definition.search_attributes;
    if attributes.is_empty() {
        set(run, BTreeMap::new());
        return Ok(None);
    }
    let paths = attributes.iter().map(|attribute| &attribute.from);
    let resolved = match render::resolve(turn, run, DataContext::of(scope), paths)? {
        Ok(resolved) => resolved,
        Err(TooMuchRead { bytes }) => {
            set(run, BTreeMap::new());
            return Ok(Some(format!(
                "the search attributes are omitted: their paths read {bytes} bytes or more"
            )));
        }
    };
    let mut values = BTreeMap::new();
    let mut left_out = Vec::new();
    let mut bytes_left = ATTRIBUTES_BYTES_MAX;
    for ((position, attribute), value) in (0..).zip(attributes).zip(resolved.values()) {
        let Some(value) = value.map(|value| value.text) else {
            continue;
        };
        let bytes = value.len();
        if bytes > ATTRIBUTE_BYTES_MAX.min(bytes_left) {
            left_out.push(format!("\"{}\" ({bytes} bytes)", attribute.name));
        } else if let Some(value) = typed(attribute.kind, value) {
            bytes_left -= bytes;
            values.insert(position, value);
        }
    }
    set(run, values);
    Ok((!left_out.is_empty()).then(|| {
        format!(
            "search attributes that are too large are omitted: {} (at most {ATTRIBUTE_BYTES_MAX} bytes each, \
             {ATTRIBUTES_BYTES_MAX} together)",
            left_out.join(", ")
        )
    }))
}

/// Computes the search attributes again if any of them is a value of the state, which begins after the run is created.
pub(super) fn note_state(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    let record = run.definition.clone();
    let mut attributes = record.definition.search_attributes.iter();
    if attributes.any(|attribute| attribute.from.root == Root::State) {
        let note = compute(turn, run, ScopeNumber::ROOT)?;
        run.record.detail = note.map(|note| cut(&note));
    }
    Ok(())
}

fn set(run: &mut LoadedRun, values: BTreeMap<u16, AttributeValue>) {
    if run.record.attributes != values {
        run.record.attributes = values;
    }
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
