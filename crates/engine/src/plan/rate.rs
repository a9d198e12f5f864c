//! Rate limits of executors (W33), in [sliding windows](crate::sliding_window).

use crate::definition::{RateLimit, RateWindow};
use crate::sliding_window::Window;
use crate::tables::TimeSlice;
use std::collections::BTreeMap;

/// An executor's latest calls, by the window that limits them.
pub(crate) type Calls = BTreeMap<RateWindow, Vec<TimeSlice>>;

/// When one more call is allowed, in milliseconds; `None` if one is allowed at `now_ms`.
pub(crate) fn full_until_ms(calls: &Calls, limit: &RateLimit, now_ms: u64) -> Option<u64> {
    let until_ms = |window: RateWindow| {
        let calls_max = u64::from(limit.calls_max(window)?);
        let slices = calls.get(&window)?;
        sliding(window, calls_max).has_room_at_ms(slices, 1, now_ms)
    };
    RateWindow::ALL.into_iter().filter_map(until_ms).max()
}

/// How many more calls `window` allows at `now_ms`; `None` if it is not limited.
pub(crate) fn remaining(
    calls: &Calls,
    limit: &RateLimit,
    window: RateWindow,
    now_ms: u64,
) -> Option<u32> {
    let calls_max = limit.calls_max(window)?;
    let sliding = sliding(window, u64::from(calls_max));
    let slices = calls.get(&window);
    let count = slices.map_or(0, |slices| sliding.held(slices, now_ms));
    Some(calls_max.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX)))
}

/// Records a call at `now_ms` in every limited window.
pub(super) fn note_call(calls: &mut Calls, limit: &RateLimit, now_ms: u64) {
    for window in RateWindow::ALL {
        let Some(calls_max) = limit.calls_max(window) else {
            calls.remove(&window);
            continue;
        };
        let slices = calls.entry(window).or_default();
        sliding(window, u64::from(calls_max)).add(slices, 1, now_ms);
    }
}

fn sliding(window: RateWindow, limit: u64) -> Window {
    Window {
        length_ms: window.length_ms(),
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RATE_SLICES;

    fn per_second(calls_max: u32) -> RateLimit {
        RateLimit {
            max_per_second: Some(calls_max),
            ..RateLimit::default()
        }
    }

    /// Makes a call at each of `times` that has room; says when it was let through.
    fn admitted(limit: &RateLimit, times: impl Iterator<Item = u64>) -> (Vec<u64>, Calls) {
        let mut calls = Calls::new();
        let mut made = Vec::new();
        for now_ms in times {
            if full_until_ms(&calls, limit, now_ms).is_none() {
                note_call(&mut calls, limit, now_ms);
                made.push(now_ms);
            }
        }
        (made, calls)
    }

    fn calls_in_any_second(made: &[u64]) -> usize {
        let in_second = |end: &u64| {
            let is_in = |ms: &&u64| **ms <= *end && end - **ms < 1_000;
            made.iter().filter(is_in).count()
        };
        made.iter().map(in_second).max().unwrap_or(0)
    }

    #[test]
    fn a_small_window_is_exact() {
        let limit = per_second(2);
        let (made, calls) = admitted(&limit, [0, 300, 999, 1_000, 1_299, 1_300].into_iter());
        assert_eq!(made, [0, 300, 1_000, 1_300]);
        assert_eq!(full_until_ms(&calls, &limit, 1_300), Some(2_000));
        assert_eq!(
            remaining(&calls, &limit, RateWindow::Second, 1_300),
            Some(0)
        );
        assert_eq!(
            remaining(&calls, &limit, RateWindow::Second, 2_000),
            Some(1)
        );
        assert_eq!(remaining(&calls, &limit, RateWindow::Minute, 2_000), None);
    }

    #[test]
    fn no_second_ever_holds_more_and_room_comes_back_in_time() {
        for calls_max in [1, 63, 64, 65, 500] {
            let limit = per_second(calls_max);
            // Bursts of three calls a millisecond, with pauses.
            let times = (0..20_000).map(|k| k / 3 + k / 900 * 170);
            let (made, calls) = admitted(&limit, times);
            assert!(calls_in_any_second(&made) <= calls_max as usize);
            assert!(calls[&RateWindow::Second].len() <= RATE_SLICES as usize + 1);
            // The first call that had to wait came as soon as the oldest slice had left.
            let next = made[calls_max as usize];
            assert!(next <= 1_000 + 1_000_u64.div_ceil(u64::from(RATE_SLICES)) + 170);
        }
    }

    #[test]
    fn every_limited_window_counts() {
        let limit = RateLimit {
            max_per_second: Some(10),
            max_per_minute: Some(3),
            max_per_hour: Some(4),
        };
        let (made, calls) = admitted(&limit, [0, 1, 2, 3, 60_000, 60_001].into_iter());
        assert_eq!(made, [0, 1, 2, 60_000]);
        assert_eq!(full_until_ms(&calls, &limit, 60_001), Some(3_600_000));
    }

    #[test]
    fn a_limit_that_a_new_revision_lowers_applies_immediately() {
        let (_, calls) = admitted(&per_second(100), (0..90).map(|k| k * 2));
        assert_eq!(full_until_ms(&calls, &per_second(5), 180), Some(1_174));
    }
}
