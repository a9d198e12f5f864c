//! Signals that a run keeps, and decisions about its approvals.

use super::{Row, row, scope_id, scope_path};
use crate::samples;
use flotilla_engine::definition::{CallRole, StepIndex};
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    CompensationPlace, CompensationRecord, Compensations, DecisionRecord, Decisions,
    SignalIdPlaces, SignalIds, SignalRecord, SignalsWaiting, TakenSignal, TakenSignals,
};

pub(super) fn rows() -> Vec<Row> {
    let run = RunNumber(7);
    let payload = samples::payload();
    vec![
        row::<SignalsWaiting>(
            (run, scope_path(), samples::signal_type(), 1),
            SignalRecord { payload, bytes: 20 },
        ),
        row::<TakenSignals>(
            (run, ScopeNumber(2), 1),
            TakenSignal {
                to: scope_path(),
                signal_type: samples::signal_type(),
                signal: SignalRecord { payload, bytes: 20 },
            },
        ),
        row::<Compensations>(
            (run, CompensationPlace::of(3)),
            CompensationRecord {
                scope: scope_id(),
                step: StepIndex(3),
                visit: 2,
                call: CallRole::FallbackCompensation,
                input: Ok(payload),
            },
        ),
        row::<Decisions>(
            (run, 2, 1),
            DecisionRecord {
                is_approved: true,
                actor: Some(samples::identity()),
                comment: Some(samples::comment()),
                at_ms: 5_000,
            },
        ),
        row::<SignalIds>((run, samples::signal_id()), 1),
        row::<SignalIdPlaces>((run, 1), samples::signal_id()),
    ]
}
