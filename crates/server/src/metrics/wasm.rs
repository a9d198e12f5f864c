//! Counts the calls of WebAssembly actions on this node.

use super::histogram::Histogram;
use flotilla_wasm::{InvocationError, Report};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The results of a call.
const RESULTS: [&str; 5] = ["completed", "failed", "timed_out", "broken", "refused"];

/// Calls of WebAssembly actions since the node's start.
#[derive(Debug, Default)]
pub(crate) struct WasmCalls {
    by_result: [AtomicU64; RESULTS.len()],
    running: AtomicU64,
    log_lines_dropped: AtomicU64,
    pub(super) time: Histogram,
}

impl WasmCalls {
    /// Makes a call and counts it.
    pub(crate) fn measure(&self, call: impl FnOnce() -> Report) -> Report {
        let since = Instant::now();
        self.running.fetch_add(1, Ordering::Relaxed);
        let called = call();
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.time.record(since.elapsed());
        self.by_result[place(&called)].fetch_add(1, Ordering::Relaxed);
        called
    }

    /// Counts a call that the node could not prepare.
    pub(crate) fn refuse(&self) {
        self.by_result[4].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts log lines that were not written.
    pub(crate) fn drop_log_lines(&self, count: u64) {
        self.log_lines_dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Log lines that were not written.
    pub(super) fn log_lines_dropped(&self) -> u64 {
        self.log_lines_dropped.load(Ordering::Relaxed)
    }

    /// Calls by result.
    pub(super) fn by_result(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let results = RESULTS.into_iter().zip(&self.by_result);
        results.map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }

    /// Calls in progress.
    pub(super) fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }
}

/// The result's index in [`RESULTS`].
fn place(called: &Report) -> usize {
    match &called.result {
        Ok(_) => 0,
        Err(InvocationError::Failed(_)) => 1,
        Err(InvocationError::TimedOut { .. }) => 2,
        Err(InvocationError::Broken(_)) => 3,
    }
}
