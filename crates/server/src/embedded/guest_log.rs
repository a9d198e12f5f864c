//! What guests log, in the log of their node.
//!
//! The lines have their own target, by which an operator can filter them. Their text is foreign: control characters are
//! escaped, so that a line cannot pass for two, and an action that logs more than its rate loses lines. So do all actions
//! together.

use crate::limits::{
    GUEST_LOG_ACTIONS_MAX, GUEST_LOG_BURST_BYTES_MAX, GUEST_LOG_BURST_LINES_MAX,
    GUEST_LOG_BYTES_PER_SECOND_MAX, GUEST_LOG_LINES_PER_SECOND_MAX, GUEST_LOG_NODE_FACTOR,
};
use flotilla_leader::ActionKey;
use flotilla_wasm::{LogLevel, LogLine, Logs};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// Writes what guests log.
pub(super) struct GuestLog(Mutex<Rates>);

/// What may be logged now.
struct Rates {
    /// By the actions that have logged most recently.
    by_action: LruCache<ActionKey, ActionRate>,
    /// By all of them.
    node: Rate,
}

struct ActionRate {
    rate: Rate,
    /// Lines that were dropped since the log last said so.
    dropped_count: u64,
}

/// What is written of a call's log.
struct Admitted {
    /// How many lines of the action's earlier calls were dropped, if the log says so now.
    reported_count: Option<u64>,
    /// How many of the call's first lines are written.
    lines_count: usize,
    /// How many lines of it are dropped, here or in the sandbox.
    dropped_count: u64,
}

impl Default for GuestLog {
    fn default() -> Self {
        let capacity = const { NonZeroUsize::new(GUEST_LOG_ACTIONS_MAX).expect("it is not zero") };
        Self(Mutex::new(Rates {
            by_action: LruCache::new(capacity),
            node: Rate::new(GUEST_LOG_NODE_FACTOR),
        }))
    }
}

impl GuestLog {
    /// Writes what a call has logged, as far as the rates allow. Returns the number of lines that are dropped.
    pub(super) fn write(&self, key: &ActionKey, logs: &Logs) -> u64 {
        let admitted = {
            let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            rates.admit(key, logs)
        };
        if let Some(dropped_count) = admitted.reported_count {
            let (namespace, action) = key;
            tracing::warn!(
                target: "flotilla::guest",
                %namespace,
                %action,
                dropped_count,
                "the action has logged too much: lines were dropped"
            );
        }
        for line in &logs.lines()[..admitted.lines_count] {
            write_line(key, line);
        }
        admitted.dropped_count
    }
}

impl Rates {
    fn admit(&mut self, key: &ActionKey, logs: &Logs) -> Admitted {
        let now = Instant::now();
        let of_action = self
            .by_action
            .get_or_insert_mut(key.clone(), || ActionRate {
                rate: Rate::new(1),
                dropped_count: 0,
            });
        let node = &mut self.node;
        let mut admits = |rate: &mut Rate, bytes: u64| {
            let is_free = rate.has(now, bytes) && node.has(now, bytes);
            if is_free {
                rate.take(bytes);
                node.take(bytes);
            }
            is_free
        };
        let is_reported = of_action.dropped_count > 0 && admits(&mut of_action.rate, 0);
        let reported_count = is_reported.then(|| std::mem::take(&mut of_action.dropped_count));
        let mut lines_count = 0;
        for line in logs.lines() {
            if !admits(&mut of_action.rate, line.text.len() as u64) {
                break;
            }
            lines_count += 1;
        }
        let dropped_count = logs.dropped_count() + (logs.lines().len() - lines_count) as u64;
        of_action.dropped_count += dropped_count;
        Admitted {
            lines_count,
            dropped_count,
            reported_count,
        }
    }
}

/// A rate in lines and in bytes.
struct Rate {
    lines: Tokens,
    bytes: Tokens,
}

impl Rate {
    /// The rate of `factor` actions.
    fn new(factor: u64) -> Self {
        let tokens = |burst, per_second| Tokens::new(factor * burst, factor * per_second);
        Self {
            lines: tokens(GUEST_LOG_BURST_LINES_MAX, GUEST_LOG_LINES_PER_SECOND_MAX),
            bytes: tokens(GUEST_LOG_BURST_BYTES_MAX, GUEST_LOG_BYTES_PER_SECOND_MAX),
        }
    }

    /// Whether a line of this length may be written.
    fn has(&mut self, now: Instant, bytes: u64) -> bool {
        self.lines.at(now) >= 1 && self.bytes.at(now) >= bytes
    }

    fn take(&mut self, bytes: u64) {
        self.lines.thousandths -= 1_000;
        self.bytes.thousandths -= 1_000 * bytes;
    }
}

/// A bucket of tokens.
struct Tokens {
    /// What is left, in thousandths of a token.
    thousandths: u64,
    burst: u64,
    per_second: u64,
    /// Until when the bucket was filled.
    filled_at: Instant,
}

impl Tokens {
    fn new(burst: u64, per_second: u64) -> Self {
        Self {
            thousandths: burst * 1_000,
            burst,
            per_second,
            filled_at: Instant::now(),
        }
    }

    /// The tokens that are left at a time.
    fn at(&mut self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.filled_at);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        if passed_ms > 0 {
            let more = passed_ms.saturating_mul(self.per_second);
            let full = self.burst * 1_000;
            self.thousandths = self.thousandths.saturating_add(more).min(full);
            self.filled_at = now;
        }
        self.thousandths / 1_000
    }
}

/// Writes a line, at the guest's level. The span names the task.
fn write_line((namespace, action): &ActionKey, line: &LogLine) {
    macro_rules! write_at {
        ($level:expr) => {
            tracing::event!(
                target: "flotilla::guest",
                $level,
                %namespace,
                %action,
                "{}",
                escaped(&line.text)
            )
        };
    }
    match line.level {
        LogLevel::Trace => write_at!(tracing::Level::TRACE),
        LogLevel::Debug => write_at!(tracing::Level::DEBUG),
        LogLevel::Info => write_at!(tracing::Level::INFO),
        LogLevel::Warn => write_at!(tracing::Level::WARN),
        LogLevel::Error => write_at!(tracing::Level::ERROR),
    }
}

/// The text without what could end its line, or change how it or others are shown.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let is_separator = matches!(character, '\u{2028}' | '\u{2029}');
        let is_direction = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || is_separator || is_direction {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::{ActionName, Namespace};
    use std::time::Duration;

    fn key(number: usize) -> ActionKey {
        let action = ActionName::new(format!("a{number}")).unwrap();
        (Namespace::default_namespace(), action)
    }

    fn rates() -> Rates {
        GuestLog::default().0.into_inner().unwrap()
    }

    /// The log of a call: lines of the same length.
    fn logs(lines: usize, bytes: usize) -> Logs {
        let mut logs = Logs::default();
        for _ in 0..lines {
            logs.push(LogLevel::Info, "x".repeat(bytes).as_bytes());
        }
        logs
    }

    /// How many lines are written of a flood of calls.
    async fn flood(rates: &mut Rates, actions: usize, seconds: u64) -> usize {
        let mut written = 0;
        for _ in 0..seconds {
            for number in 0..actions {
                let admitted = rates.admit(&key(number), &logs(256, 1));
                written += admitted.lines_count + usize::from(admitted.reported_count.is_some());
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        written
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lines_is_bounded_per_action() {
        let mut rates = rates();
        let written = flood(&mut rates, 1, 100).await;
        assert_eq!(written, 256 + 99 * 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_many_actions_is_bounded_too() {
        let mut rates = rates();
        let written = flood(&mut rates, 1_500, 10).await;
        assert_eq!(written, 10 * (256 + 9 * 20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_bytes_is_bounded() {
        let mut rates = rates();
        let first = rates.admit(&key(0), &logs(16, 4_096));
        assert_eq!(first.lines_count, 16);
        let second = rates.admit(&key(0), &logs(16, 4_096));
        assert_eq!((second.lines_count, second.dropped_count), (0, 16));
        tokio::time::advance(Duration::from_secs(1)).await;
        let third = rates.admit(&key(0), &logs(16, 4_096));
        assert_eq!(third.lines_count, 2, "8 KiB per second");
        let other = rates.admit(&key(1), &logs(16, 4_096));
        assert_eq!(other.lines_count, 16, "each action has its rate");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_dropped_is_counted_and_reported_once_there_is_room() {
        let mut rates = rates();
        rates.admit(&key(0), &logs(256, 1));
        let full = rates.admit(&key(0), &logs(300, 1));
        // The sandbox keeps 256 of them.
        assert_eq!((full.dropped_count, full.reported_count), (300, None));
        tokio::time::advance(Duration::from_millis(50)).await;
        let next = rates.admit(&key(0), &logs(0, 0));
        assert_eq!((next.dropped_count, next.reported_count), (0, Some(300)));
        tokio::time::advance(Duration::from_secs(60)).await;
        let later = rates.admit(&key(0), &logs(1, 1));
        assert_eq!((later.lines_count, later.reported_count), (1, None));
    }

    #[test]
    fn a_text_cannot_end_its_line_or_change_how_it_is_shown() {
        assert_eq!(escaped("naïve ✓ \"a\\b\""), "naïve ✓ \"a\\b\"");
        assert_eq!(
            escaped("a\r\nERROR b\t\u{1b}[31m\0\u{2028}\u{202e}\u{85}"),
            "a\\r\\nERROR b\\t\\u{1b}[31m\\u{0}\\u{2028}\\u{202e}\\u{85}"
        );
    }
}
