//! The log lines of one call.

use crate::limits::{LOG_BYTES_MAX, LOG_LINE_BYTES_MAX, LOG_LINES_MAX};

/// What a guest logged during one call, limited in lines and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    lines: Vec<LogLine>,
    bytes: usize,
    dropped_count: u64,
}

/// One line of a guest's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The guest's level for the line.
    pub level: LogLevel,
    /// The text; bytes that are not UTF-8 are replaced, and a long line is truncated.
    pub text: String,
}

/// The level of a line. On the wire of ABI 1: 0 trace, 1 debug, 2 info, 3 warn, 4 error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// 0, and anything below.
    Trace,
    /// Level 1.
    Debug,
    /// Level 2.
    Info,
    /// Level 3.
    Warn,
    /// 4, and anything above.
    Error,
}

impl Logs {
    /// The kept lines, oldest first.
    #[must_use]
    pub fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// How many more there were: above a limit, or not within the guest's memory.
    #[must_use]
    pub fn dropped_count(&self) -> u64 {
        self.dropped_count
    }

    /// Adds a line; beyond the limits it is dropped and counted.
    pub fn push(&mut self, level: LogLevel, text: &[u8]) {
        let text = String::from_utf8_lossy(&text[..text.len().min(LOG_LINE_BYTES_MAX)]);
        if self.lines.len() == LOG_LINES_MAX || self.bytes + text.len() > LOG_BYTES_MAX {
            self.drop_line();
            return;
        }
        self.bytes += text.len();
        self.lines.push(LogLine {
            level,
            text: text.into_owned(),
        });
    }

    pub(crate) fn drop_line(&mut self) {
        self.dropped_count += 1;
    }
}

impl LogLevel {
    pub(crate) fn from_wire(level: i32) -> Self {
        match level {
            ..=0 => Self::Trace,
            1 => Self::Debug,
            2 => Self::Info,
            3 => Self::Warn,
            4.. => Self::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_past_the_count_are_dropped_and_counted() {
        let mut logs = Logs::default();
        for _ in 0..LOG_LINES_MAX + 3 {
            logs.push(LogLevel::Info, b"line");
        }
        assert_eq!(logs.lines().len(), LOG_LINES_MAX);
        assert_eq!(logs.dropped_count(), 3);
    }

    #[test]
    fn long_lines_are_cut_and_those_past_all_bytes_are_dropped() {
        let mut logs = Logs::default();
        let long = vec![b'x'; LOG_LINE_BYTES_MAX + 1];
        for _ in 0..=LOG_BYTES_MAX / LOG_LINE_BYTES_MAX {
            logs.push(LogLevel::Info, &long);
        }
        assert!(
            logs.lines()
                .iter()
                .all(|line| line.text.len() == LOG_LINE_BYTES_MAX)
        );
        assert_eq!(logs.lines().len(), LOG_BYTES_MAX / LOG_LINE_BYTES_MAX);
        assert_eq!(logs.dropped_count(), 1);
    }

    #[test]
    fn levels_outside_the_range_are_the_nearest_one() {
        assert_eq!(LogLevel::from_wire(i32::MIN), LogLevel::Trace);
        assert_eq!(LogLevel::from_wire(2), LogLevel::Info);
        assert_eq!(LogLevel::from_wire(i32::MAX), LogLevel::Error);
    }
}
