//! Reads due timers (design rule 6).

use super::cluster;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{TimerKey, TimerKind, Timers, encode_prefix, visit};
use crate::timer::effective_due_ms;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Timers that are due, and when to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueTimers {
    /// Those that are due, the earliest of each kind first.
    pub timers: Vec<TimerKey>,
    /// When the next one that is not due yet will be, in milliseconds.
    pub next_due_ms: Option<u64>,
}

/// The cursor with which a driver reads timers, so that its reads skip the tombstones of fired ones (design rule 4).
///
/// A timer is never set for a time before its entry's. A range that a read finds empty, up to the log's time, therefore
/// stays empty. A cursor must not outlive the state that it was used with.
#[derive(Clone, Debug, Default)]
pub struct TimerCursor {
    /// By kind: no timer is due before this time, in milliseconds, and none will be.
    from_ms: BTreeMap<TimerKind, u64>,
}

impl TimerCursor {
    /// The timers that are due at `now_ms`, at most `limit` of each kind. The next read begins where
    /// this one found the first timer.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn due_timers(
        &mut self,
        reader: &dyn Reader,
        now_ms: u64,
        limit: usize,
    ) -> Result<DueTimers, StoreError> {
        let cluster = cluster(reader)?;
        let mut due = DueTimers::default();
        for kind in TimerKind::ALL {
            let mut first_ms = None;
            let mut count = 0;
            visit::<Timers>(reader, &self.range(kind), Order::Ascending, |timer, ()| {
                first_ms.get_or_insert(timer.due_ms);
                let due_ms = effective_due_ms(&timer, cluster.grace_until_ms);
                if due_ms > now_ms || count == limit {
                    let next_ms = due_ms.max(now_ms);
                    due.next_due_ms =
                        Some(due.next_due_ms.map_or(next_ms, |next| next.min(next_ms)));
                    return ControlFlow::Break(());
                }
                count += 1;
                due.timers.push(timer);
                ControlFlow::Continue(())
            })?;
            let from_ms = first_ms.map_or(cluster.now_ms, |first_ms| first_ms.min(cluster.now_ms));
            self.from_ms.insert(kind, from_ms);
        }
        Ok(due)
    }

    /// Where the timers of `kind` can lie.
    fn range(&self, kind: TimerKind) -> KeyRange {
        let from_ms = self.from_ms.get(&kind).copied().unwrap_or(0);
        KeyRange {
            from: encode_prefix::<Timers>(&(kind, from_ms)),
            ..KeyRange::prefix(&encode_prefix::<Timers>(&kind))
        }
    }
}
