//! Rate limits: sliding windows on log time (W33).
//!
//! A window never holds more calls than its limit. Calls are grouped into time slices. A slice has the time of its last
//! call and leaves the window as a whole. For limits up to `RATE_SLICES` calls per window, a slice is one millisecond,
//! so the limit is exact; above that, capacity returns at most 1/64 of the window late. An executor therefore keeps
//! little more than 64 slices per window.

use crate::definition::{RateLimit, RateWindow};
use crate::limits::RATE_SLICES;
use crate::tables::CallBucket;
use std::collections::BTreeMap;

/// An executor's latest calls, by the window that limits them.
pub(crate) type Calls = BTreeMap<RateWindow, Vec<CallBucket>>;

/// When one more call is allowed, in milliseconds; `None` if one is allowed at `now_ms`.
pub(crate) fn full_until_ms(calls: &Calls, limit: &RateLimit, now_ms: u64) -> Option<u64> {
    let until_ms = |window: RateWindow| {
        let calls_max = u64::from(limit.calls_max(window)?);
        let buckets = calls.get(&window)?;
        let mut count = count_in(buckets, window, now_ms);
        if count < calls_max {
            return None;
        }
        let mut last_ms = now_ms;
        for bucket in in_window(buckets, window, now_ms) {
            count -= u64::from(bucket.count);
            last_ms = bucket.last_ms;
            if count < calls_max {
                break;
            }
        }
        Some(last_ms.saturating_add(window.length_ms()))
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
    let count = calls
        .get(&window)
        .map_or(0, |buckets| count_in(buckets, window, now_ms));
    Some(calls_max.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX)))
}

/// Records a call at `now_ms` in every limited window.
pub(super) fn note_call(calls: &mut Calls, limit: &RateLimit, now_ms: u64) {
    for window in RateWindow::ALL {
        let Some(calls_max) = limit.calls_max(window) else {
            calls.remove(&window);
            continue;
        };
        let buckets = calls.entry(window).or_default();
        buckets.retain(|bucket| is_in(bucket, window, now_ms));
        let slice_ms = slice_ms(window, calls_max);
        let slice = |ms: u64| ms / slice_ms;
        match buckets.last_mut() {
            Some(last) if slice(last.last_ms) == slice(now_ms) => {
                last.last_ms = now_ms;
                last.count += 1;
            }
            Some(_) | None => buckets.push(CallBucket {
                last_ms: now_ms,
                count: 1,
            }),
        }
    }
}

fn slice_ms(window: RateWindow, calls_max: u32) -> u64 {
    if calls_max <= RATE_SLICES {
        1
    } else {
        window.length_ms().div_ceil(u64::from(RATE_SLICES))
    }
}

fn is_in(bucket: &CallBucket, window: RateWindow, now_ms: u64) -> bool {
    now_ms < bucket.last_ms.saturating_add(window.length_ms())
}

fn in_window(
    buckets: &[CallBucket],
    window: RateWindow,
    now_ms: u64,
) -> impl Iterator<Item = &CallBucket> {
    buckets
        .iter()
        .filter(move |bucket| is_in(bucket, window, now_ms))
}

fn count_in(buckets: &[CallBucket], window: RateWindow, now_ms: u64) -> u64 {
    in_window(buckets, window, now_ms)
        .map(|bucket| u64::from(bucket.count))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

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
