//! Remembers which calls a closed cluster would refuse (X5).

use super::needs::Needs;
use crate::limits::{CALLERS_WITHOUT_TOKEN_MAX, CALLS_WITHOUT_TOKEN_MEMORY};
use flotilla_engine::BindingSubject;
use flotilla_engine::ids::Namespace;
use flotilla_replica::Caller;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The calls of a period are forgotten together.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// The calls of the last hour whose caller has shown no token, by address, by what they need and by namespace.
#[derive(Debug)]
pub(crate) struct CallsWithoutToken {
    began: Instant,
    /// The newest one is last.
    periods: Mutex<VecDeque<Period>>,
}

/// Which calls are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallKind {
    /// The address of the caller, or of the proxy in front of it; `None` if it is unknown.
    pub(crate) address: Option<IpAddr>,
    /// The subject of its client certificate, if it has presented one.
    pub(crate) subject: Option<BindingSubject>,
    /// What the call needs of its caller; `None` for the calls of further callers.
    pub(crate) needs: Option<Needs>,
    /// Where it needs it, if the request says so.
    pub(crate) namespace: Option<Namespace>,
}

impl CallKind {
    /// Calls of more callers than are counted separately.
    const OTHER: Self = Self {
        address: None,
        subject: None,
        needs: None,
        namespace: None,
    };
}

#[derive(Debug)]
struct Period {
    began: Instant,
    counts: BTreeMap<CallKind, u64>,
}

impl CallsWithoutToken {
    /// No calls yet.
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            periods: Mutex::default(),
        }
    }

    /// Counts one more call.
    pub(super) fn record(
        &self,
        caller: Option<&Caller>,
        (needs, namespace): (Needs, Option<&Namespace>),
    ) {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        forget_old(&mut periods, now);
        if periods.back().is_none_or(|one| now - one.began >= PERIOD) {
            periods.push_back(Period {
                began: now,
                counts: BTreeMap::new(),
            });
        }
        let Some(Period { counts, .. }) = periods.back_mut() else {
            return;
        };
        let bound = caller.and_then(Caller::bound_actor);
        let kind = CallKind {
            address: caller.and_then(Caller::address),
            subject: bound.map(|bound| bound.subject.clone()),
            needs: Some(needs),
            namespace: namespace.cloned(),
        };
        let is_separate = counts.len() < CALLERS_WITHOUT_TOKEN_MAX || counts.contains_key(&kind);
        let kind = if is_separate { kind } else { CallKind::OTHER };
        *counts.entry(kind).or_default() += 1;
    }

    /// The numbers of calls.
    pub(crate) fn counts(&self) -> BTreeMap<CallKind, u64> {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut periods, Instant::now());
        let mut sums = BTreeMap::new();
        for (kind, count) in periods.iter().flat_map(|one| &one.counts) {
            *sums.entry(kind.clone()).or_default() += count;
        }
        sums
    }

    /// How long the calls have been counted.
    pub(crate) fn counted(&self) -> Duration {
        self.began.elapsed().min(CALLS_WITHOUT_TOKEN_MEMORY)
    }
}

fn forget_old(periods: &mut VecDeque<Period>, now: Instant) {
    while periods
        .front()
        .is_some_and(|oldest| now - oldest.began >= CALLS_WITHOUT_TOKEN_MEMORY)
    {
        periods.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Needs = Needs::Credential;

    fn record(calls: &CallsWithoutToken, number: u32) {
        let caller = Caller::default().with_address(address(number));
        calls.record(Some(&caller), (START, None));
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_for_an_hour() {
        let calls = CallsWithoutToken::new();
        record(&calls, 1);
        tokio::time::advance(PERIOD).await;
        record(&calls, 1);
        record(&calls, 2);
        let of = |number| {
            let kind = CallKind {
                address: Some(address(number)),
                subject: None,
                needs: Some(START),
                namespace: None,
            };
            calls.counts().get(&kind).copied()
        };
        assert_eq!((of(1), of(2)), (Some(2), Some(1)));
        assert_eq!(calls.counted(), PERIOD);
        tokio::time::advance(CALLS_WITHOUT_TOKEN_MEMORY - PERIOD).await;
        assert_eq!((of(1), of(2)), (Some(1), Some(1)));
        tokio::time::advance(PERIOD).await;
        assert_eq!(calls.counts(), BTreeMap::new());
        assert_eq!(calls.counted(), CALLS_WITHOUT_TOKEN_MEMORY);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_further_callers_are_counted_together() {
        let calls = CallsWithoutToken::new();
        let callers = u32::try_from(CALLERS_WITHOUT_TOKEN_MAX).unwrap();
        for number in 0..callers + 2 {
            record(&calls, number);
        }
        record(&calls, 0);
        let counts = calls.counts();
        assert_eq!(counts.len(), CALLERS_WITHOUT_TOKEN_MAX + 1);
        assert_eq!(counts.get(&CallKind::OTHER), Some(&2));
    }
}
