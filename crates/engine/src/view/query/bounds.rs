//! Narrows a condition on the start time to a range of run numbers. Numbers increase with time, so start times need no
//! index.

use super::condition::{Comparison, Condition};
use crate::ids::RunNumber;
use crate::store::{Order, Reader, StoreError};
use crate::tables::{Runs, range_from, visit};
use crate::view::cluster;
use std::ops::ControlFlow;

/// The run numbers, both inclusive, outside of which no run started when the conditions say.
pub(super) fn numbers(
    reader: &dyn Reader,
    conditions: &[Condition],
) -> Result<(RunNumber, RunNumber), StoreError> {
    let run_count = cluster(reader)?.run_count;
    let mut bounds = (RunNumber(1), RunNumber(run_count));
    for condition in conditions {
        let Condition::StartedAt(comparison, at_ms) = condition else {
            continue;
        };
        let (from_ms, until_ms) = times(*comparison, *at_ms);
        if from_ms > 0 {
            bounds.0 = bounds.0.max(first_since(reader, from_ms, run_count)?);
        }
        if let Some(after_ms) = until_ms.checked_add(1) {
            let next = first_since(reader, after_ms, run_count)?;
            bounds.1 = bounds.1.min(RunNumber(next.0 - 1));
        }
    }
    Ok(bounds)
}

/// The times, both inclusive, outside of which the comparison does not hold.
pub(super) fn times(comparison: Comparison, at_ms: u64) -> (u64, u64) {
    match comparison {
        Comparison::Equal => (at_ms, at_ms),
        Comparison::NotEqual => (0, u64::MAX),
        Comparison::Less | Comparison::LessOrEqual => (0, at_ms),
        Comparison::Greater | Comparison::GreaterOrEqual => (at_ms, u64::MAX),
    }
}

/// A number that no run before it started at `at_ms` or later, and no run from it on earlier.
fn first_since(reader: &dyn Reader, at_ms: u64, run_count: u64) -> Result<RunNumber, StoreError> {
    let (mut low, mut high) = (1, run_count + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match started_from(reader, RunNumber(middle))? {
            Some((number, started_at_ms)) if started_at_ms < at_ms => low = number.0 + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(RunNumber(low))
}

/// The first run that is kept from `number` on, and when it started.
fn started_from(
    reader: &dyn Reader,
    number: RunNumber,
) -> Result<Option<(RunNumber, u64)>, StoreError> {
    let range = range_from::<Runs>(&(), &number);
    let mut found = None;
    visit::<Runs>(reader, &range, Order::Ascending, |number, run| {
        found = Some((number, run.started_at_ms));
        ControlFlow::Break(())
    })?;
    Ok(found)
}
