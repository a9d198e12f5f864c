//! A log of known work, and the resulting rows.

use flotilla_engine::store::{KeyRange, MemoryStore, Order, Reader, Writes};
use flotilla_engine::{ENGINE_VERSION, Engine, Entry};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The entries of a workload, the initial rows and the resulting rows.
pub struct Recording {
    pub(crate) base: MemoryStore,
    /// The position of the entry before the first one of the recording.
    pub(crate) base_index: u64,
    pub(crate) entries: Vec<StagedEntry>,
    pub(crate) rows: MemoryStore,
}

/// An entry, and the stage of its commands in a run's life.
pub(crate) struct StagedEntry {
    pub(crate) stage: &'static str,
    pub(crate) entry: Entry,
}

/// The store of a replay.
pub trait Rows {
    /// The current rows.
    fn reader(&self) -> &dyn Reader;

    /// Performs the writes of an entry.
    fn write(&mut self, writes: &Writes);
}

impl Rows for MemoryStore {
    fn reader(&self) -> &dyn Reader {
        self
    }

    fn write(&mut self, writes: &Writes) {
        Self::write(self, writes);
    }
}

/// What part of a replay is timed.
#[derive(Clone, Copy)]
pub struct Timed {
    /// Only the entries of this stage.
    pub stage: Option<&'static str>,
    /// Also the writes of an entry and the release of its memory; otherwise `Engine::apply` alone.
    pub is_write_included: bool,
}

impl Recording {
    /// The initial rows.
    #[must_use]
    pub fn base(&self) -> &MemoryStore {
        &self.base
    }

    /// The initial rows, as one write.
    #[must_use]
    pub fn base_writes(&self) -> Writes {
        let rows = self.base.rows();
        rows.map(|(key, value)| (key.to_vec(), Some(value.to_vec())))
            .collect()
    }

    /// The resulting rows.
    #[must_use]
    pub fn rows(&self) -> &MemoryStore {
        &self.rows
    }

    /// An entry from the middle, with the maximum number of commands.
    #[must_use]
    pub fn middle_entry(&self) -> &Entry {
        &self.entries[self.entries.len() / 2].entry
    }

    /// The commands of a stage, or all.
    #[must_use]
    pub fn commands_count(&self, stage: Option<&str>) -> usize {
        let entries = self.entries.iter();
        let counted = entries.filter(|entry| stage.is_none_or(|stage| stage == entry.stage));
        counted.map(|entry| entry.entry.commands.len()).sum()
    }

    /// Applies the entries to `rows`, which must be the initial rows. Returns how long the timed part took.
    ///
    /// # Panics
    /// When the store fails.
    pub fn replay(&self, rows: &mut impl Rows, timed: Timed) -> Duration {
        let mut engine =
            Engine::open(rows.reader(), ENGINE_VERSION).expect("a bench ends with its store");
        let mut time = Duration::ZERO;
        for (index, StagedEntry { stage, entry }) in (self.base_index + 1..).zip(&self.entries) {
            let started = Instant::now();
            let applied = engine.apply(rows.reader(), index, entry);
            let applied = applied.expect("a bench ends with its store");
            let apply = started.elapsed();
            rows.write(&applied.writes);
            drop(applied);
            let all = started.elapsed();
            if timed.stage.is_none_or(|timed| timed == *stage) {
                time += if timed.is_write_included { all } else { apply };
            }
        }
        time
    }

    /// Replays once and checks that it gives exactly the recorded rows.
    ///
    /// # Panics
    /// When it does not.
    pub fn check_replay(&self, rows: &mut impl Rows) {
        let all = Timed {
            stage: None,
            is_write_included: true,
        };
        let time = self.replay(rows, all);
        assert!(time > Duration::ZERO, "expected a replay to take time");
        let mut expected = self.rows.rows();
        let whole = KeyRange {
            from: Vec::new(),
            to: vec![u8::MAX],
        };
        let scanned = rows
            .reader()
            .scan(&whole, Order::Ascending, &mut |key, value| {
                let found = Some((key, value));
                assert_eq!(found, expected.next(), "the replay gave another row");
                ControlFlow::Continue(())
            });
        scanned.expect("a bench ends with its store");
        assert_eq!(None, expected.next(), "the replay lacks a row");
    }
}
