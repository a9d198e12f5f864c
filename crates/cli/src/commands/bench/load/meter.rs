//! What is noted while a load lasts.

use super::flags::Until;
use crate::failure::Failure;
use hdrhistogram::Histogram;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longer latencies count as this one: an hour.
const LATENCY_MAX_MICROSECONDS: u64 = 3_600_000_000;
/// Three digits of a latency are kept.
const DIGITS: u8 = 3;

/// Latencies of a part of the work, by its name.
pub(in super::super) type Stage = (&'static str, Histogram<u64>);

/// Notes what happens between the end of the warm-up and the end of the load. Shared by all clients: at some ten
/// thousand notes a second one lock is no matter.
#[derive(Debug)]
pub(in super::super) struct Meter {
    // A std mutex: it is never held across an await.
    tally: Mutex<Tally>,
    /// Rung when as many were done as there are to be.
    done: Notify,
}

#[derive(Debug)]
struct Tally {
    /// When the warm-up ended.
    begun: Option<Instant>,
    /// When the load ended.
    ended: Option<Instant>,
    /// How many are to be done or to fail until then, if that is how it ends.
    left: Option<u64>,
    measured: Measured,
}

/// What came of a load.
#[derive(Debug)]
pub(in super::super) struct Measured {
    /// Of the work that was to begin while it was measured, however long it took. In microseconds.
    pub(in super::super) latencies: Histogram<u64>,
    /// The same for parts of the work.
    pub(in super::super) stages: Vec<Stage>,
    /// How much was done while it was measured.
    pub(in super::super) completed: u64,
    /// The same by second, as far as something was done.
    seconds: Vec<u64>,
    /// How much failed.
    pub(in super::super) errors: u64,
    /// The first reason.
    pub(in super::super) error: Option<Failure>,
    /// For how long it was measured.
    pub(in super::super) elapsed: Duration,
    /// Work whose time had come, and that had not begun when the load ended.
    pub(in super::super) not_begun: u64,
    /// Whether a signal ended it early.
    pub(in super::super) is_stopped: bool,
}

impl Meter {
    /// Notes nothing yet. Parts of the work are told apart by these names.
    pub(in super::super) fn new(stages: &[&'static str]) -> Self {
        Self {
            tally: Mutex::new(Tally {
                begun: None,
                ended: None,
                left: None,
                measured: Measured::nothing(stages),
            }),
            done: Notify::new(),
        }
    }

    /// The warm-up is over.
    pub(super) fn begin(&self, until: Until) {
        let mut tally = self.lock();
        tally.begun = Some(Instant::now());
        if let Until::Done(count) = until {
            tally.left = Some(count);
        }
    }

    /// What is done from now on is not counted. Of what was due before, latencies still are, unless a number of
    /// them was asked for. So many were due and had not begun.
    pub(super) fn end(&self, not_begun: u64) {
        let mut tally = self.lock();
        tally.end(Instant::now());
        tally.measured.not_begun = not_begun;
    }

    /// Waits until as many were done as there are to be; for ever when that is not how it ends.
    pub(super) async fn done(&self) {
        self.done.notified().await;
    }

    /// How much is done, for people who wait.
    pub(super) fn completed(&self) -> u64 {
        self.lock().measured.completed
    }

    /// A piece of work that was due at a time is over.
    pub(super) fn note(&self, due: Instant, result: Result<Instant, Failure>) {
        let now = Instant::now();
        let mut tally = self.lock();
        let Some(begun) = tally.begun else { return };
        let (is_due, is_open) = (due >= begun, tally.ended.is_none());
        if tally.left.is_some() && !(is_due && is_open) {
            return;
        }
        let measured = &mut tally.measured;
        match result {
            Ok(over) => {
                if is_due {
                    record(&mut measured.latencies, over.saturating_duration_since(due));
                }
                if is_open {
                    measured.count(now - begun);
                }
            }
            Err(error) => {
                measured.add_error(error);
            }
        }
        if tally.is_last() {
            tally.end(now);
            self.done.notify_one();
        }
    }

    /// A part of it took so long, and is over now.
    pub(in super::super) fn note_stage(&self, stage: usize, latency: Duration) {
        let since = Instant::now().checked_sub(latency);
        let mut tally = self.lock();
        if tally.begun.is_some_and(|begun| since >= Some(begun)) {
            tally.measured.add_stage(stage, latency);
        }
    }

    /// What was noted so far.
    pub(super) fn take(&self) -> Measured {
        std::mem::replace(&mut self.lock().measured, Measured::nothing(&[]))
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        // Nothing that is done under the lock panics half-way.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    /// Counts down, and says whether nothing is left.
    fn is_last(&mut self) -> bool {
        match &mut self.left {
            None => false,
            Some(left) => {
                *left = left.saturating_sub(1);
                *left == 0
            }
        }
    }

    fn end(&mut self, now: Instant) {
        if let (Some(begun), None) = (self.begun, self.ended) {
            self.ended = Some(now);
            self.measured.elapsed = now - begun;
        }
    }
}

impl Measured {
    /// Nothing yet. Parts of the work are told apart by these names.
    pub(in super::super) fn nothing(stages: &[&'static str]) -> Self {
        Self {
            latencies: histogram(),
            stages: stages.iter().map(|name| (*name, histogram())).collect(),
            completed: 0,
            seconds: Vec::new(),
            errors: 0,
            error: None,
            elapsed: Duration::ZERO,
            not_begun: 0,
            is_stopped: false,
        }
    }

    /// Notes a latency and that it is of work that was done at a time, counted from the beginning.
    pub(in super::super) fn add(&mut self, latency: Duration, since_begin: Duration) {
        record(&mut self.latencies, latency);
        self.count(since_begin);
    }

    /// Notes the latency of a part of the work.
    pub(in super::super) fn add_stage(&mut self, stage: usize, latency: Duration) {
        record(&mut self.stages[stage].1, latency);
    }

    /// Notes a failure.
    pub(in super::super) fn add_error(&mut self, error: Failure) {
        self.errors += 1;
        self.error.get_or_insert(error);
    }

    /// How much was done in each second that was measured to its end.
    pub(in super::super) fn per_second(&self) -> Vec<u64> {
        let whole = usize::try_from(self.elapsed.as_secs()).unwrap_or(usize::MAX);
        let seconds = self.seconds.iter().copied();
        seconds.chain(std::iter::repeat(0)).take(whole).collect()
    }

    /// Whether there is nothing to report but the error.
    pub(in super::super) fn is_all_failed(&self) -> bool {
        self.errors > 0 && self.is_nothing_done()
    }

    /// Whether there is nothing to report.
    pub(super) fn is_nothing(&self) -> bool {
        self.errors == 0 && self.is_nothing_done()
    }

    fn is_nothing_done(&self) -> bool {
        self.latencies.is_empty() && self.completed == 0
    }

    fn count(&mut self, since_begin: Duration) {
        self.completed += 1;
        let second = usize::try_from(since_begin.as_secs()).unwrap_or(usize::MAX);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, 0);
        }
        self.seconds[second] += 1;
    }
}

fn record(latencies: &mut Histogram<u64>, latency: Duration) {
    let latency = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    latencies.saturating_record(latency);
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LATENCY_MAX_MICROSECONDS, DIGITS)
        .expect("three digits are at most five, and an hour is more than two")
}
