//! How attempts change an executor's breaker, rate and health, and whether an attempt is let through (W31–W33).

use super::breaker::{self, BreakerDecision, Change};
use super::execution::Execution;
use super::{health, rate};
use crate::definition::ExecutorIndex;
use crate::store::StoreError;
use crate::tables::{BreakerState, PlanEvent, Verdict};
use crate::turn::Turn;

/// Whether an attempt may be made.
pub(super) enum Gate {
    /// It may.
    Open { is_probe: bool },
    /// The breaker lets nothing through.
    Broken { until_ms: Option<u64> },
    /// A rate window is full.
    Full { until_ms: u64 },
}

/// Lets an attempt on the executor through and records it, or returns why not.
pub(super) fn admit(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    index: ExecutorIndex,
) -> Result<Gate, StoreError> {
    let executor = execution.executor(index);
    if executor.breaker.is_none() && executor.rate_limit.is_none() {
        return Ok(Gate::Open { is_probe: false });
    }
    let now_ms = turn.now_ms();
    let mut row = execution.executor_record(turn, index)?;
    let mut is_probe = false;
    if let Some(settings) = &executor.breaker {
        forget_quarantined(turn, &mut row.record.breaker);
        match breaker::decide(&row.record.breaker, settings, now_ms) {
            BreakerDecision::Free => {}
            BreakerDecision::Probe => is_probe = true,
            BreakerDecision::Blocked { until_ms } => return Ok(Gate::Broken { until_ms }),
        }
    }
    if let Some(limit) = &executor.rate_limit {
        if let Some(until_ms) = rate::full_until_ms(&row.record.calls, limit, now_ms) {
            return Ok(Gate::Full { until_ms });
        }
        rate::note_call(&mut row.record.calls, limit, now_ms);
    }
    if is_probe {
        breaker::take_probe_slot(&mut row.record.breaker, execution.probe());
    }
    row.put(turn);
    Ok(Gate::Open { is_probe })
}

/// Records how an attempt ended. A breaker that opens or closes adds an event to the run's history.
pub(super) fn note_result(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    index: ExecutorIndex,
    result: AttemptResult,
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    let executor = execution.executor(index);
    let mut row = execution.executor_record(turn, index)?;
    if let Some(settings) = &execution.plan().health {
        health::note(&mut row.record, settings, result.verdict, now_ms);
    }
    let state = &mut row.record.breaker;
    let change = match &executor.breaker {
        Some(settings) if result.is_failure => {
            breaker::fail(state, settings, execution.probe(), now_ms)
        }
        Some(_) => breaker::succeed(state, execution.probe()),
        None => None,
    };
    row.put(turn);
    let executor = executor.name.clone();
    match change {
        Some(Change::Opened { until_ms }) => {
            execution.event(PlanEvent::BreakerOpened { executor, until_ms });
        }
        Some(Change::Closed) => execution.event(PlanEvent::BreakerClosed { executor }),
        None => {}
    }
    Ok(())
}

/// How an attempt ended.
pub(super) struct AttemptResult {
    /// Whether the executor has failed (W34).
    pub(super) is_failure: bool,
    /// What health counts.
    pub(super) verdict: Verdict,
}

/// Frees the probe of an attempt that will never have a result.
pub(super) fn free_probe(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    index: ExecutorIndex,
) -> Result<(), StoreError> {
    if execution.executor(index).breaker.is_some() {
        let mut row = execution.executor_record(turn, index)?;
        breaker::free(&mut row.record.breaker, execution.probe());
        row.put(turn);
    }
    Ok(())
}

/// Until when the executor's breaker is open, in milliseconds.
pub(super) fn open_until_ms(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    index: ExecutorIndex,
) -> Result<Option<u64>, StoreError> {
    if execution.executor(index).breaker.is_none() {
        return Ok(None);
    }
    let row = execution.executor_record(turn, index)?;
    Ok(match row.record.breaker {
        BreakerState::Open { until_ms } => Some(until_ms),
        BreakerState::Closed { .. } | BreakerState::HalfOpen { .. } => None,
    })
}

/// A quarantined run ends no attempt: its probe must not occupy the slot forever (design rule 10).
fn forget_quarantined(turn: &Turn<'_, '_>, state: &mut BreakerState) {
    if let BreakerState::HalfOpen { probes } = state {
        probes.retain(|probe| !turn.is_quarantined(probe.run));
    }
}
