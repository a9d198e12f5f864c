//! The order in which an execution tries the executors: the four selections (W30).

use super::execution::Execution;
use super::health;
use crate::definition::{ExecutorIndex, Health, Plan, Selection};
use crate::store::StoreError;
use crate::tables::Plans;
use crate::turn::Turn;
use std::cmp::Reverse;

/// Determines the order, which is fixed for the whole execution.
pub(super) fn choose(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
) -> Result<Vec<ExecutorIndex>, StoreError> {
    let plan = execution.plan();
    let mut order = by_priority(plan);
    match plan.selection {
        Selection::StaticOrder => {}
        Selection::RoundRobin => rotate(turn, execution, &mut order)?,
        Selection::Random => shuffle(turn, &mut order),
        Selection::HealthWeighted => {
            let settings = plan.health.as_ref();
            let settings = settings.expect("a health-weighted plan has health settings (E405)");
            by_health(turn, execution, settings, &mut order)?;
        }
    }
    Ok(order)
}

/// Priority descending, then document order.
fn by_priority(plan: &Plan) -> Vec<ExecutorIndex> {
    let mut order: Vec<ExecutorIndex> = (0..)
        .zip(&plan.executors)
        .map(|(position, _)| ExecutorIndex(position))
        .collect();
    order.sort_by_key(|index| Reverse(plan.executor(*index).priority));
    order
}

/// Each execution begins one executor further than the one before.
fn rotate(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    order: &mut [ExecutorIndex],
) -> Result<(), StoreError> {
    let mut record = execution.plan_record(turn)?;
    let first = record.rotations_count % order.len() as u64;
    order.rotate_left(usize::try_from(first).expect("it is below a length"));
    record.rotations_count = record.rotations_count.wrapping_add(1);
    turn.put::<Plans>(&execution.key(), record);
    Ok(())
}

/// Every order is as likely as any other (Fisher–Yates).
fn shuffle(turn: &mut Turn<'_, '_>, order: &mut [ExecutorIndex]) {
    for last in (1..order.len()).rev() {
        let drawn = turn.random() % (last as u64 + 1);
        order.swap(last, usize::try_from(drawn).expect("it is below a length"));
    }
}

/// Health descending, ties in the given order; the given order if there are too few results.
fn by_health(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    settings: &Health,
    order: &mut [ExecutorIndex],
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    let mut scores = vec![0; order.len()];
    let mut samples_count = 0;
    for index in &*order {
        let row = execution.executor_record(turn, *index)?;
        let executor = execution.executor(*index);
        let health = health::score(&row.record, executor, settings, now_ms);
        scores[index.position()] = health.score;
        samples_count += health.samples_count;
    }
    if samples_count >= health::samples_min(settings) {
        order.sort_by_key(|index| Reverse(scores[index.position()]));
    }
    Ok(())
}
