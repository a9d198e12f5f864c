//! Sliding windows on log time (W33): how much was accepted in the last second, minute or hour.
//!
//! A window never holds more than its limit. What was accepted is grouped into time slices. A slice has the time of its
//! last addition and leaves the window as a whole. For limits up to `RATE_SLICES` per window, a slice is one
//! millisecond, so the limit is exact; above that, capacity returns at most 1/64 of the window late. A window therefore
//! keeps little more than 64 slices.

use crate::limits::RATE_SLICES;
use crate::tables::TimeSlice;

/// A window with its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// In milliseconds.
    pub(crate) length_ms: u64,
    pub(crate) limit: u64,
}

impl Window {
    /// A window of one minute.
    pub(crate) fn of_minute(limit: u64) -> Self {
        Self {
            length_ms: 60_000,
            limit,
        }
    }

    /// How much the window holds at `now_ms`.
    pub(crate) fn held(&self, slices: &[TimeSlice], now_ms: u64) -> u64 {
        self.inside(slices, now_ms).map(|slice| slice.count).sum()
    }

    /// When the window has room for `amount` within its limit, in milliseconds; `None` if it has at `now_ms`. If the amount
    /// exceeds the limit, it never has: the time is then that at which the window is empty.
    pub(crate) fn has_room_at_ms(
        &self,
        slices: &[TimeSlice],
        amount: u64,
        now_ms: u64,
    ) -> Option<u64> {
        let mut count = self.held(slices, now_ms);
        if count.saturating_add(amount) <= self.limit {
            return None;
        }
        let mut last_ms = now_ms;
        for slice in self.inside(slices, now_ms) {
            count -= slice.count;
            last_ms = slice.last_ms;
            if count.saturating_add(amount) <= self.limit {
                break;
            }
        }
        Some(last_ms.saturating_add(self.length_ms))
    }

    /// Adds `amount` at `now_ms`, and forgets what has left the window.
    pub(crate) fn add(&self, slices: &mut Vec<TimeSlice>, amount: u64, now_ms: u64) {
        slices.retain(|slice| self.contains(slice, now_ms));
        let slice_ms = self.slice_ms();
        match slices.last_mut() {
            Some(last) if last.last_ms / slice_ms == now_ms / slice_ms => {
                last.last_ms = now_ms;
                last.count += amount;
            }
            Some(_) | None => slices.push(TimeSlice {
                last_ms: now_ms,
                count: amount,
            }),
        }
    }

    fn slice_ms(&self) -> u64 {
        if self.limit <= u64::from(RATE_SLICES) {
            1
        } else {
            self.length_ms.div_ceil(u64::from(RATE_SLICES))
        }
    }

    fn contains(&self, slice: &TimeSlice, now_ms: u64) -> bool {
        now_ms < slice.last_ms.saturating_add(self.length_ms)
    }

    fn inside<'s>(
        &self,
        slices: &'s [TimeSlice],
        now_ms: u64,
    ) -> impl Iterator<Item = &'s TimeSlice> {
        slices
            .iter()
            .filter(move |slice| self.contains(slice, now_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_leave_with_their_slice_and_one_beyond_the_limit_never_fits() {
        let window = Window::of_minute(1_000);
        let mut slices = Vec::new();
        window.add(&mut slices, 600, 1_000);
        window.add(&mut slices, 300, 1_500);
        window.add(&mut slices, 100, 30_000);
        assert_eq!((slices.len(), window.held(&slices, 30_000)), (2, 1_000));
        assert_eq!(window.has_room_at_ms(&slices, 1, 30_000), Some(61_500));
        assert_eq!(window.has_room_at_ms(&slices, 1, 61_500), None);
        assert_eq!(window.has_room_at_ms(&slices, 950, 61_500), Some(90_000));
        assert_eq!(
            window.has_room_at_ms(&slices, 1_001, 200_000),
            Some(260_000)
        );
    }
}
