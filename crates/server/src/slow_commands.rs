//! The log of slow commands: what an operator looks at first when calls take long.

use crate::limits::{SLOW_COMMANDS_INTERVAL, SLOW_COMMANDS_MAX};
use flotilla_engine::{CommandKind, CommandScope};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Logs commands that take longer than a threshold, from their arrival at this node to their result. If there are many, it logs
/// some of them and how many it left out.
#[derive(Debug)]
pub(crate) struct SlowCommands {
    /// `None`: none are logged.
    threshold: Option<Duration>,
    interval: Mutex<Interval>,
}

/// What was logged since the interval began.
#[derive(Debug)]
struct Interval {
    began: Instant,
    logged: usize,
    omitted: usize,
}

impl SlowCommands {
    /// Logs commands that take longer than `threshold`; none if it is zero.
    pub(crate) fn new(threshold: Duration) -> Self {
        Self {
            threshold: Some(threshold).filter(|threshold| !threshold.is_zero()),
            interval: Mutex::new(Interval {
                began: Instant::now(),
                logged: 0,
                omitted: 0,
            }),
        }
    }

    /// Records that a command took this long.
    pub(crate) fn observe(&self, kind: CommandKind, scope: &CommandScope, elapsed: Duration) {
        if self.threshold.is_none_or(|threshold| elapsed < threshold) {
            return;
        }
        let mut interval = self.interval.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(omitted) = interval.note(Instant::now()) else {
            return;
        };
        drop(interval);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let namespace = scope.namespace().map(tracing::field::display);
        tracing::warn!(
            command = kind.as_str(),
            namespace,
            elapsed_ms,
            omitted,
            "a command was slow"
        );
    }
}

impl Interval {
    /// Notes one more slow command. `Some` if it is to be logged, with the number that were left out since the last one that was.
    fn note(&mut self, now: Instant) -> Option<usize> {
        if now.saturating_duration_since(self.began) >= SLOW_COMMANDS_INTERVAL {
            self.began = now;
            self.logged = 0;
        }
        if self.logged >= SLOW_COMMANDS_MAX {
            self.omitted += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_logs_some_and_the_next_one_says_how_many_were_left_out() {
        let began = Instant::now();
        let mut interval = Interval {
            began,
            logged: 0,
            omitted: 0,
        };
        for _ in 0..SLOW_COMMANDS_MAX {
            assert_eq!(interval.note(began), Some(0));
        }
        for _ in 0..3 {
            assert_eq!(interval.note(began), None);
        }
        let later = began + SLOW_COMMANDS_INTERVAL;
        assert_eq!(interval.note(later), Some(3));
        assert_eq!(interval.note(later), Some(0));
    }

    #[test]
    fn commands_below_the_threshold_and_all_without_one_are_not_noted() {
        let scope = CommandScope::Cluster;
        for (threshold, elapsed, logged) in [(0, 9, 0), (10, 9, 0), (10, 10, 1)] {
            let slow = SlowCommands::new(Duration::from_millis(threshold));
            let elapsed = Duration::from_millis(elapsed);
            slow.observe(CommandKind::StartRun, &scope, elapsed);
            let interval = slow.interval.lock().expect("no other user");
            assert_eq!(interval.logged, logged, "{threshold}");
        }
    }
}
