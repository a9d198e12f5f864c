//! `flo bench` during an attack: runs of action steps, a worker that serves them, and the waits for their ends.

use super::arena::Arena;
use flotilla_tests::Answer;
use serde::Deserialize;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of clients of `flo bench`, in addition to the honest clients that write keys.
const CLIENTS: &str = "8";

/// A `flo bench` process.
pub(super) struct Bench(JoinHandle<Answer>);

/// The report that `flo bench` prints.
#[derive(Debug, Deserialize)]
pub(super) struct BenchReport {
    /// When it began, by this machine's clock.
    started_at_ms: u64,
    /// The runs that completed in each second.
    per_second: Vec<u64>,
    /// The runs that failed despite retries.
    pub(super) errors: u64,
    /// The first error.
    error: Option<String>,
}

/// A period, by this machine's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    begin_ms: u64,
    end_ms: u64,
}

impl Period {
    /// The time that `action` takes, and what it returns.
    pub(super) fn of<T>(action: impl FnOnce() -> T) -> (Self, T) {
        let begin_ms = now_ms();
        let done = action();
        let end_ms = now_ms();
        (Self { begin_ms, end_ms }, done)
    }
}

impl Bench {
    /// Starts `flo bench` for `length`.
    pub(super) fn start(arena: &Arena, length: Duration) -> Self {
        let flo = arena.cluster.flo();
        let seconds = length.as_secs().to_string();
        Self(thread::spawn(move || {
            let flags = [
                "--warm-up",
                "0",
                "--clients",
                CLIENTS,
                "--seconds",
                &seconds,
            ];
            flo.run(&[&["-o", "json", "bench", "steps"], &flags[..]].concat())
        }))
    }

    /// Waits until `flo bench` ends; `None` if it did not end or printed no report.
    pub(super) fn end(self) -> Option<BenchReport> {
        // The thread panics if the process does not end.
        let answer = self.0.join().ok()?;
        let report: serde_json::Result<BenchReport> = answer.decode_stdout();
        match &report {
            Err(error) => println!("  `flo bench` printed no report: {error}: {answer:?}"),
            Ok(BenchReport {
                error: Some(error), ..
            }) => {
                println!("  the first error of `flo bench`: {error}");
            }
            Ok(_) => {}
        }
        report.ok()
    }
}

impl BenchReport {
    /// The runs that completed per second, in the whole seconds of a period; `None` if it did not run for all of it.
    pub(super) fn runs_per_s(&self, period: Period) -> Option<u64> {
        let offset = |ms: u64| usize::try_from(ms.saturating_sub(self.started_at_ms) / 1_000);
        let seconds = match (offset(period.begin_ms + 999), offset(period.end_ms)) {
            (Ok(begin), Ok(end)) => self.per_second.get(begin..end)?,
            _ => return None,
        };
        Some(seconds.iter().sum::<u64>() / (seconds.len() as u64).max(1))
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_of_a_period_count() {
        let report = BenchReport {
            started_at_ms: 10_000,
            per_second: vec![1, 10, 30, 100],
            errors: 0,
            error: None,
        };
        let rate = |begin_ms, end_ms| report.runs_per_s(Period { begin_ms, end_ms });
        assert_eq!(rate(10_500, 13_500), Some(20));
        assert_eq!(rate(10_000, 12_000), Some(5));
        assert_eq!(rate(10_000, 15_000), None, "it ended before the period did");
    }
}
