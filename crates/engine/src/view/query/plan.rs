//! Selects the indexes that answer a query.

use super::bounds::times;
use super::condition::{Comparison, Condition, Equality};
use super::stream::{Stream, number_of};
use crate::ids::{AttributeName, Namespace, RunNumber};
use crate::limits::RUN_QUERY_ROWS_MAX;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    AttributeKey, AttributeValue, RunStatus, RunsByAttribute, RunsByCompletion, RunsByStatus,
    RunsByWorkflow, encode_prefix,
};
use std::ops::ControlFlow;

/// The streams that hold every run of the namespace which the conditions allow; at least one.
pub(super) fn streams(
    reader: &dyn Reader,
    namespace: &Namespace,
    conditions: &[Condition],
) -> Result<Vec<Stream>, StoreError> {
    let mut streams: Vec<Stream> = conditions
        .iter()
        .filter_map(|condition| equal(namespace, condition))
        .collect();
    for condition in conditions {
        streams.extend(collected(reader, namespace, condition)?);
    }
    if streams.is_empty() {
        let statuses = RunStatus::ALL.map(|status| of_status(namespace, status));
        streams.push(Stream::indexed(statuses));
    }
    Ok(streams)
}

/// The stream of a condition on one value: an index has its runs in order.
fn equal(namespace: &Namespace, condition: &Condition) -> Option<Stream> {
    match condition {
        Condition::Workflow(Equality::Equal, name) => {
            let parts = (namespace.clone(), name.clone());
            Some(Stream::indexed([encode_prefix::<RunsByWorkflow>(&parts)]))
        }
        Condition::Status(Equality::Equal, status) => {
            Some(Stream::indexed([of_status(namespace, *status)]))
        }
        Condition::Attribute {
            name,
            comparison: Comparison::Equal,
            values,
        } => Some(Stream::indexed(values.iter().map(|value| {
            let key = AttributeKey::new(value);
            encode_prefix::<RunsByAttribute>(&(namespace.clone(), name.clone(), key))
        }))),
        Condition::Workflow(Equality::NotEqual, _)
        | Condition::Status(Equality::NotEqual, _)
        | Condition::StartedAt(..)
        | Condition::CompletedAt(..)
        | Condition::Attribute { .. } => None,
    }
}

fn of_status(namespace: &Namespace, status: RunStatus) -> Vec<u8> {
    encode_prefix::<RunsByStatus>(&(namespace.clone(), status))
}

/// The stream of a condition on a range of values, whose runs an index has in the order of the
/// values: collected, unless they are too many. Then the other streams must do.
fn collected(
    reader: &dyn Reader,
    namespace: &Namespace,
    condition: &Condition,
) -> Result<Option<Stream>, StoreError> {
    let ranges = match condition {
        Condition::CompletedAt(comparison, at_ms) => {
            vec![completion_range(namespace, *comparison, *at_ms)]
        }
        Condition::Attribute {
            name,
            comparison:
                comparison @ (Comparison::Less
                | Comparison::LessOrEqual
                | Comparison::Greater
                | Comparison::GreaterOrEqual),
            values,
        } => values
            .iter()
            .map(|value| attribute_range(namespace, name, *comparison, value))
            .collect(),
        Condition::Workflow(..)
        | Condition::Status(..)
        | Condition::StartedAt(..)
        | Condition::Attribute { .. } => return Ok(None),
    };
    let mut numbers: Vec<RunNumber> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        reader.scan(range, Order::Ascending, &mut |key, _| {
            numbers.extend(number_of(key));
            if numbers.len() <= RUN_QUERY_ROWS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
    }
    let is_complete = numbers.len() <= RUN_QUERY_ROWS_MAX;
    Ok(is_complete.then(|| Stream::collected(numbers)))
}

fn completion_range(namespace: &Namespace, comparison: Comparison, at_ms: u64) -> KeyRange {
    let (from_ms, until_ms) = times(comparison, at_ms);
    let at = |at_ms| encode_prefix::<RunsByCompletion>(&(namespace.clone(), at_ms));
    KeyRange {
        from: at(from_ms),
        to: KeyRange::prefix(&at(until_ms)).to,
    }
}

fn attribute_range(
    namespace: &Namespace,
    name: &AttributeName,
    comparison: Comparison,
    value: &AttributeValue,
) -> KeyRange {
    let (least, greatest) = AttributeKey::range(value);
    let key = AttributeKey::new(value);
    // A key may stand for several values, so both ends are taken in.
    let (from, to) = match comparison {
        Comparison::Equal => (key.clone(), key),
        Comparison::NotEqual => (least, greatest),
        Comparison::Less | Comparison::LessOrEqual => (least, key),
        Comparison::Greater | Comparison::GreaterOrEqual => (key, greatest),
    };
    let at = |key: AttributeKey| {
        encode_prefix::<RunsByAttribute>(&(namespace.clone(), name.clone(), key))
    };
    KeyRange {
        from: at(from),
        to: KeyRange::prefix(&at(to)).to,
    }
}
