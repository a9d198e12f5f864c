//! The window of recent entries, decoded, from which replication and apply read without touching
//! the device.

use crate::log::meter::Meter;
use crate::log::record::LogEntry;
use crate::log::vote::Vote;
use crate::raft::type_config::LogId;
use std::collections::VecDeque;

/// The log as of the last accepted call, written or not.
///
/// Invariant: `entries` is contiguous and ends at `last`; every entry that the device may not have
/// yet is among them.
#[derive(Debug, Default)]
pub(crate) struct Window {
    entries: VecDeque<(LogEntry, usize)>,
    bytes: usize,
    bytes_max: usize,
    pub(crate) last: Option<LogId>,
    pub(crate) purged: Option<LogId>,
    pub(crate) committed: Option<LogId>,
    pub(crate) vote: Option<Vote>,
    /// See [`Fact::Lost`](crate::log::device::Fact::Lost).
    pub(crate) lost: Option<LogId>,
    pub(crate) meter: Meter,
}

/// Where to find the entries of a range.
pub(crate) struct EntryLocation {
    /// The part that only the device has: `from..to`, possibly empty.
    pub(crate) device: std::ops::Range<u64>,
    /// The rest, which follows it.
    pub(crate) recent: Vec<LogEntry>,
}

impl Window {
    /// A window over an empty log.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            ..Self::default()
        }
    }

    /// Adds an entry whose record has `bytes` bytes.
    ///
    /// # Panics
    /// If it does not follow the last one: a hole in the log is a bug of the caller.
    pub(crate) fn append(&mut self, entry: LogEntry, bytes: usize) {
        let index = entry.log_id.index();
        if let Some(last) = &self.last {
            assert_eq!(index, last.index() + 1, "the log has no holes");
        }
        self.meter.append(index, bytes);
        self.last = Some(entry.log_id);
        self.bytes += bytes;
        self.entries.push_back((entry, bytes));
    }

    /// Drops the entries after `last`.
    pub(crate) fn truncate_after(&mut self, last: Option<LogId>) {
        let from = last.map_or(0, |log_id| log_id.index() + 1);
        while self
            .entries
            .back()
            .is_some_and(|(entry, _)| entry.log_id.index() >= from)
        {
            self.bytes -= self.entries.pop_back().map_or(0, |(_, bytes)| bytes);
        }
        self.meter.truncate(from);
        if self.last.is_some_and(|own| own.index() >= from) {
            self.last = last.max(self.purged);
        }
    }

    /// Drops the entries up to `purged`.
    pub(crate) fn purge(&mut self, purged: LogId) {
        while self.first().is_some_and(|first| first <= purged.index()) {
            self.pop_front();
        }
        self.meter.purge(purged.index());
        self.purged = self.purged.max(Some(purged));
        self.last = self.last.max(self.purged);
    }

    /// Evicts old entries; the device has all up to `flushed`.
    pub(crate) fn evict(&mut self, flushed: u64) {
        while self.bytes > self.bytes_max && self.first().is_some_and(|first| first <= flushed) {
            self.pop_front();
        }
    }

    /// The entries with `from <= index < to`, as far as they exist; of the recent ones no more than
    /// `bytes_max`, but at least one.
    pub(crate) fn locate(&self, from: u64, to: u64, bytes_max: usize) -> EntryLocation {
        let from = from.max(self.purged.map_or(0, |log_id| log_id.index() + 1));
        let end = self.last.map_or(0, |log_id| log_id.index() + 1).min(to);
        let first = self.first().unwrap_or(u64::MAX);
        let device = from..end.min(first).max(from);
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let count = usize::try_from(end.saturating_sub(from.max(first))).unwrap_or(usize::MAX);
        let mut room = bytes_max;
        let mut recent = Vec::new();
        for (entry, bytes) in self.entries.iter().skip(skipped).take(count) {
            if room < *bytes && !recent.is_empty() {
                break;
            }
            room = room.saturating_sub(*bytes);
            recent.push(entry.clone());
        }
        EntryLocation { device, recent }
    }

    fn first(&self) -> Option<u64> {
        self.entries.front().map(|(entry, _)| entry.log_id.index())
    }

    fn pop_front(&mut self) {
        self.bytes -= self.entries.pop_front().map_or(0, |(_, bytes)| bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::EntryPayload;

    fn window(indexes: std::ops::Range<u64>) -> Window {
        let mut window = Window::new(50);
        for index in indexes {
            let log_id = LogId::new_term_index(1, index);
            window.append(
                LogEntry {
                    log_id,
                    payload: EntryPayload::Blank,
                },
                10,
            );
        }
        window
    }

    fn indexes(entries: &[LogEntry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.log_id.index()).collect()
    }

    #[test]
    fn only_entries_that_the_device_has_are_evicted() {
        let mut window = window(0..10);
        window.evict(2);
        let located = window.locate(0, 100, usize::MAX);
        assert_eq!(
            (located.device, indexes(&located.recent)),
            (0..3, (3..10).collect())
        );
        window.evict(9);
        let located = window.locate(2, 7, usize::MAX);
        assert_eq!(
            (located.device, indexes(&located.recent)),
            (2..5, vec![5, 6])
        );
    }

    #[test]
    fn a_range_beyond_the_log_is_cut_to_what_exists() {
        let mut window = window(0..5);
        window.purge(LogId::new_term_index(1, 1));
        let located = window.locate(0, 100, usize::MAX);
        assert_eq!(
            (located.device.is_empty(), indexes(&located.recent)),
            (true, vec![2, 3, 4])
        );
        window.truncate_after(Some(LogId::new_term_index(1, 2)));
        assert_eq!(indexes(&window.locate(0, 100, usize::MAX).recent), [2]);
        let located = window.locate(7, 9, usize::MAX);
        assert!(located.device.is_empty() && located.recent.is_empty());
    }

    #[test]
    fn a_read_has_at_least_one_entry_and_else_keeps_to_its_bytes() {
        let window = window(0..5);
        assert_eq!(indexes(&window.locate(1, 5, 1).recent), [1]);
        assert_eq!(indexes(&window.locate(1, 5, 25).recent), [1, 2]);
    }

    #[test]
    fn a_purge_past_the_end_moves_the_end() {
        let mut window = window(0..5);
        window.purge(LogId::new_term_index(2, 20));
        assert_eq!(window.last, Some(LogId::new_term_index(2, 20)));
        assert!(window.locate(0, 100, usize::MAX).recent.is_empty());
    }
}
