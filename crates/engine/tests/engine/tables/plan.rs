//! Rows of the tables of plans, and one value of everything that other records say of plans.

use super::{Row, row};
use crate::samples;
use flotilla_engine::definition::{ExecutorIndex, RateWindow};
use flotilla_engine::ids::{PlanNumber, RunNumber};
use flotilla_engine::rows::{
    BreakerState, CacheExpiries, CacheUsage, CachedResultRecord, CachedResults, DefinitionNumber,
    EventListing, PlanEvent, PlanExecutorRecord, PlanExecutors, PlanFailure, PlanNumbers,
    PlanRecord, PlanState, PlanWait, Plans, PlansByEvent, Probe, Sample, TimeSlice, Verdict,
};
use std::collections::BTreeMap;

/// A row of every table.
pub(super) fn rows() -> Vec<Row> {
    let number = PlanNumber(3);
    let key = || {
        (
            samples::namespace(),
            samples::workflow(),
            samples::name("payment"),
        )
    };
    vec![
        row::<Plans>(key(), plan(number)),
        row::<PlanNumbers>(number, key()),
        row::<PlanExecutors>((number, samples::name("stripe")), executor()),
        row::<CachedResults>(
            (number, 77),
            CachedResultRecord {
                key: "charge:\"c-1\"".to_owned(),
                output: samples::json(),
                invalidations_count: 2,
                expires_at_ms: 9_000,
            },
        ),
        row::<CacheExpiries>((number, 9_000, 77), ()),
        row::<PlansByEvent>(
            (
                samples::namespace(),
                samples::name("refunded"),
                samples::workflow(),
                samples::name("payment"),
            ),
            EventListing {
                is_in_latest: true,
                is_in_last_executed: false,
            },
        ),
    ]
}

fn plan(number: PlanNumber) -> PlanRecord {
    PlanRecord {
        number,
        last_executed: DefinitionNumber(4),
        rotations_count: 5,
        cache: CacheUsage {
            invalidations_count: 2,
            results_count: 1,
            bytes: 7,
            oldest_ms: 9_000,
            sweep_due_ms: Some(9_000),
        },
    }
}

fn executor() -> PlanExecutorRecord {
    let sample = |at_ms, verdict| Sample { at_ms, verdict };
    let probe = Probe {
        run: RunNumber(7),
        activation: 2,
    };
    let bucket = TimeSlice {
        last_ms: 1_000,
        count: 3,
    };
    PlanExecutorRecord {
        breaker: BreakerState::HalfOpen {
            probes: vec![probe],
        },
        calls: BTreeMap::from(RateWindow::ALL.map(|window| (window, vec![bucket]))),
        samples: vec![
            sample(1_000, Verdict::Success),
            sample(2_000, Verdict::Answer),
            sample(3_000, Verdict::Failure),
        ],
    }
}

/// An execution that has failed once.
pub(super) fn state() -> PlanState {
    PlanState {
        order: vec![ExecutorIndex(1), ExecutorIndex(0)],
        position: 1,
        attempt: 2,
        started_at_ms: 1_000,
        failure: Some(PlanFailure {
            code: "busy".to_owned(),
            output: Some(samples::payload()),
            is_retryable: true,
            not_before_ms: Some(9_000),
        }),
        invalidations_count: Some(2),
        wait: PlanWait::Retry { due_ms: 8_000 },
    }
}

/// One event of each kind, in the order of the enum.
pub(super) fn events() -> Vec<PlanEvent> {
    let executor = || samples::name("stripe");
    vec![
        PlanEvent::ExecutorStart {
            executor: executor(),
            attempt: 1,
            is_probe: true,
        },
        PlanEvent::ExecutorSuccess {
            executor: executor(),
        },
        PlanEvent::ExecutorOutcome {
            executor: executor(),
            outcome: samples::outcome(),
        },
        PlanEvent::ExecutorRetry {
            executor: executor(),
            attempt: 2,
            due_ms: 5_000,
        },
        PlanEvent::ExecutorExhausted {
            executor: executor(),
            attempts: 2,
            code: "busy".to_owned(),
        },
        PlanEvent::BreakerSkip {
            executor: executor(),
            until_ms: Some(5_000),
        },
        PlanEvent::BreakerOpened {
            executor: executor(),
            until_ms: 5_000,
        },
        PlanEvent::BreakerClosed {
            executor: executor(),
        },
        PlanEvent::RateLimited {
            executor: executor(),
            until_ms: 5_000,
        },
        PlanEvent::CacheHit {
            key: "charge:\"c-1\"".to_owned(),
        },
        PlanEvent::Fallback {
            outcome: samples::outcome(),
        },
    ]
}
