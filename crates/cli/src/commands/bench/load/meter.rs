//! Recording of measurements while a load runs.

use super::flags::Until;
use crate::failure::Failure;
use hdrhistogram::Histogram;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The longest recorded latency, an hour; longer ones count as this one.
const LATENCY_MAX_MICROSECONDS: u64 = 3_600_000_000;
/// The number of significant digits of a latency.
const DIGITS: u8 = 3;

/// The name of a stage and its latencies.
pub(in super::super) type Stage = (&'static str, Histogram<u64>);

/// Records what happens between the end of the warm-up and the end of the load. All clients share
/// it: at some ten thousand records per second one lock is enough.
#[derive(Debug)]
pub(in super::super) struct Meter {
    // A std mutex: it is never held across an await.
    counts: Mutex<Counts>,
    /// Notified when the requested number of operations is done.
    done: Notify,
}

#[derive(Debug)]
struct Counts {
    /// When the warm-up ended.
    begun: Option<Instant>,
    /// When the load ended.
    ended: Option<Instant>,
    /// The number of operations still to be done or to fail, if the load ends by count.
    left: Option<u64>,
    measured: Measured,
}

/// The measurement of a load.
#[derive(Debug)]
pub(in super::super) struct Measured {
    /// Latencies of the operations that were scheduled during the measurement, however long they
    /// took, in microseconds.
    pub(in super::super) latencies: Histogram<u64>,
    /// Latencies of the stages.
    pub(in super::super) stages: Vec<Stage>,
    /// The number of operations completed during the measurement.
    pub(in super::super) completed: u64,
    /// The completed operations by second, up to the last second with any.
    seconds: Vec<u64>,
    /// The number of failed operations.
    pub(in super::super) errors: u64,
    /// The first error.
    pub(in super::super) error: Option<Failure>,
    /// The length of the measurement.
    pub(in super::super) elapsed: Duration,
    /// Operations that were due but had not begun when the load ended.
    pub(in super::super) not_started: u64,
    /// Whether a signal ended it early.
    pub(in super::super) is_stopped: bool,
}

impl Meter {
    /// An empty meter for stages of these names.
    pub(in super::super) fn new(stages: &[&'static str]) -> Self {
        Self {
            counts: Mutex::new(Counts {
                begun: None,
                ended: None,
                left: None,
                measured: Measured::nothing(stages),
            }),
            done: Notify::new(),
        }
    }

    /// Starts the measurement after the warm-up.
    pub(super) fn begin(&self, until: Until) {
        let mut counts = self.lock();
        counts.begun = Some(Instant::now());
        if let Until::Done(count) = until {
            counts.left = Some(count);
        }
    }

    /// Ends the measurement. Operations that complete later are not counted, but latencies of those
    /// that were due before still are, unless a count was requested. `not_started` operations were
    /// due and had not begun.
    pub(super) fn end(&self, not_started: u64) {
        let mut counts = self.lock();
        counts.end(Instant::now());
        counts.measured.not_started = not_started;
    }

    /// Waits until the requested number of operations is done; forever without one.
    pub(super) async fn done(&self) {
        self.done.notified().await;
    }

    /// The number of completed operations, for progress.
    pub(super) fn completed(&self) -> u64 {
        self.lock().measured.completed
    }

    /// Records the result of an operation that was due at this time.
    pub(super) fn note(&self, due: Instant, result: Result<Instant, Failure>) {
        let now = Instant::now();
        let mut counts = self.lock();
        let Some(begun) = counts.begun else { return };
        let (is_due, is_open) = (due >= begun, counts.ended.is_none());
        if counts.left.is_some() && !(is_due && is_open) {
            return;
        }
        let measured = &mut counts.measured;
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
        if counts.is_last() {
            counts.end(now);
            self.done.notify_one();
        }
    }

    /// Records a stage that took this long and ends now.
    pub(in super::super) fn note_stage(&self, stage: usize, latency: Duration) {
        let since = Instant::now().checked_sub(latency);
        let mut counts = self.lock();
        if counts.begun.is_some_and(|begun| since >= Some(begun)) {
            counts.measured.add_stage(stage, latency);
        }
    }

    /// Takes what was recorded so far.
    pub(super) fn take(&self) -> Measured {
        std::mem::replace(&mut self.lock().measured, Measured::nothing(&[]))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Nothing panics midway while holding the lock.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Counts down; returns whether nothing is left.
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
    /// An empty measurement for stages of these names.
    pub(in super::super) fn nothing(stages: &[&'static str]) -> Self {
        Self {
            latencies: histogram(),
            stages: stages.iter().map(|name| (*name, histogram())).collect(),
            completed: 0,
            seconds: Vec::new(),
            errors: 0,
            error: None,
            elapsed: Duration::ZERO,
            not_started: 0,
            is_stopped: false,
        }
    }

    /// Records the latency of an operation that completed at this time since the beginning.
    pub(in super::super) fn add(&mut self, latency: Duration, since_begin: Duration) {
        record(&mut self.latencies, latency);
        self.count(since_begin);
    }

    /// Records the latency of a stage.
    pub(in super::super) fn add_stage(&mut self, stage: usize, latency: Duration) {
        record(&mut self.stages[stage].1, latency);
    }

    /// Records a failure.
    pub(in super::super) fn add_error(&mut self, error: Failure) {
        self.errors += 1;
        self.error.get_or_insert(error);
    }

    /// The completed operations in each full second.
    pub(in super::super) fn per_second(&self) -> Vec<u64> {
        let whole = usize::try_from(self.elapsed.as_secs()).unwrap_or(usize::MAX);
        let seconds = self.seconds.iter().copied();
        seconds.chain(std::iter::repeat(0)).take(whole).collect()
    }

    /// Whether there is nothing to report except the error.
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
