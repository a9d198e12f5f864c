//! Circuit breakers (W32).
//!
//! A breaker takes a failing executor out of rotation. After a number of consecutive failures it opens and lets nothing
//! through. After its cooldown, a bounded number of attempts are probes: the first success closes it, the first failure
//! opens it again. A probe is identified by its activation, so only probes decide, whatever was in flight before the
//! breaker opened.

use crate::definition::Breaker;
use crate::limits::PROBES_MAX;
use crate::tables::{BreakerState, Probe};

/// A breaker's decision on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreakerDecision {
    /// It is closed.
    Free,
    /// It is half-open and has a free slot.
    Probe,
    /// It lets nothing through until this time in milliseconds, or until a probe ends.
    Blocked { until_ms: Option<u64> },
}

/// How a result changed the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Opened { until_ms: u64 },
    Closed,
}

/// Whether an attempt may be made at `now_ms`.
pub(crate) fn decide(state: &BreakerState, settings: &Breaker, now_ms: u64) -> BreakerDecision {
    let in_flight = match state {
        BreakerState::Closed { .. } => return BreakerDecision::Free,
        BreakerState::Open { until_ms } if now_ms < *until_ms => {
            let until_ms = Some(*until_ms);
            return BreakerDecision::Blocked { until_ms };
        }
        BreakerState::Open { .. } => 0,
        BreakerState::HalfOpen { probes } => probes_count(probes),
    };
    if in_flight < probes_max(settings) {
        BreakerDecision::Probe
    } else {
        BreakerDecision::Blocked { until_ms: None }
    }
}

/// The maximum number of probes in flight.
pub(crate) fn probes_max(settings: &Breaker) -> u32 {
    settings.half_open_max_calls.min(PROBES_MAX)
}

/// Probes that are in flight.
pub(crate) fn probes_count(probes: &[Probe]) -> u32 {
    u32::try_from(probes.len()).unwrap_or(u32::MAX)
}

/// Reserves a slot for a probe that was let through.
pub(super) fn take_probe_slot(state: &mut BreakerState, probe: Probe) {
    match state {
        BreakerState::HalfOpen { probes } => probes.push(probe),
        BreakerState::Closed { .. } | BreakerState::Open { .. } => {
            let probes = vec![probe];
            *state = BreakerState::HalfOpen { probes };
        }
    }
}

/// Frees the slot of an attempt that ends; true if it had one.
pub(super) fn free(state: &mut BreakerState, probe: Probe) -> bool {
    let BreakerState::HalfOpen { probes } = state else {
        return false;
    };
    let before = probes.len();
    probes.retain(|other| *other != probe);
    probes.len() < before
}

/// An attempt succeeded.
pub(super) fn succeed(state: &mut BreakerState, probe: Probe) -> Option<Change> {
    let was_probe = free(state, probe);
    match state {
        BreakerState::Closed { failures_count } => {
            *failures_count = 0;
            None
        }
        BreakerState::HalfOpen { .. } if was_probe => {
            *state = BreakerState::default();
            Some(Change::Closed)
        }
        // An attempt that began before the breaker opened says nothing about the present.
        BreakerState::HalfOpen { .. } | BreakerState::Open { .. } => None,
    }
}

/// An attempt failed at `now_ms`.
pub(super) fn fail(
    state: &mut BreakerState,
    settings: &Breaker,
    probe: Probe,
    now_ms: u64,
) -> Option<Change> {
    let was_probe = free(state, probe);
    let opens = match state {
        BreakerState::Closed { failures_count } => {
            *failures_count = failures_count.saturating_add(1);
            *failures_count >= settings.failure_threshold
        }
        BreakerState::HalfOpen { .. } => was_probe,
        BreakerState::Open { .. } => false,
    };
    opens.then(|| {
        let until_ms = now_ms.saturating_add(settings.cooldown_ms);
        *state = BreakerState::Open { until_ms };
        Change::Opened { until_ms }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunNumber;

    const SETTINGS: Breaker = Breaker {
        failure_threshold: 2,
        cooldown_ms: 100,
        half_open_max_calls: 2,
    };

    fn probe(number: u64) -> Probe {
        Probe {
            run: RunNumber(number),
            activation: 1,
        }
    }

    fn decide_at(state: &BreakerState, now_ms: u64) -> BreakerDecision {
        decide(state, &SETTINGS, now_ms)
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let mut state = BreakerState::default();
        assert_eq!(fail(&mut state, &SETTINGS, probe(1), 10), None);
        assert_eq!(succeed(&mut state, probe(1)), None);
        assert_eq!(fail(&mut state, &SETTINGS, probe(1), 20), None);
        let opened = fail(&mut state, &SETTINGS, probe(1), 30);
        assert_eq!(opened, Some(Change::Opened { until_ms: 130 }));
        let until_ms = Some(130);
        assert_eq!(
            decide_at(&state, 129),
            BreakerDecision::Blocked { until_ms }
        );
        assert_eq!(decide_at(&state, 130), BreakerDecision::Probe);
    }

    #[test]
    fn a_half_open_one_lets_so_many_probes_through_and_the_first_result_decides() {
        let mut open = BreakerState::Open { until_ms: 100 };
        take_probe_slot(&mut open, probe(1));
        assert_eq!(decide_at(&open, 100), BreakerDecision::Probe);
        take_probe_slot(&mut open, probe(2));
        assert_eq!(
            decide_at(&open, 100),
            BreakerDecision::Blocked { until_ms: None }
        );
        let mut closing = open.clone();
        assert_eq!(succeed(&mut closing, probe(2)), Some(Change::Closed));
        assert_eq!(closing, BreakerState::default());
        let opened = fail(&mut open, &SETTINGS, probe(1), 120);
        assert_eq!(opened, Some(Change::Opened { until_ms: 220 }));
        assert_eq!(succeed(&mut open, probe(2)), None, "a late probe");
        assert_eq!(open, BreakerState::Open { until_ms: 220 });
    }

    #[test]
    fn what_began_before_it_opened_neither_closes_nor_opens_it() {
        let mut state = BreakerState::Open { until_ms: 100 };
        take_probe_slot(&mut state, probe(1));
        let before = state.clone();
        assert_eq!(succeed(&mut state, probe(9)), None);
        assert_eq!(fail(&mut state, &SETTINGS, probe(9), 110), None);
        assert_eq!(state, before);
        assert!(free(&mut state, probe(1)));
        assert_eq!(decide_at(&state, 110), BreakerDecision::Probe);
    }
}
