//! A log of known work, and what it leads to.

use flotilla_engine::store::{KeyRange, MemoryStore, Order, Reader, Writes};
use flotilla_engine::{ENGINE_VERSION, Engine, Entry};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The entries that carried a workload, the rows that they begin with and the rows that they lead to.
pub struct Recording {
    pub(crate) base: MemoryStore,
    /// The place of the last entry before the first one here.
    pub(crate) base_index: u64,
    pub(crate) entries: Vec<StagedEntry>,
    pub(crate) rows: MemoryStore,
}

/// An entry, and what its commands do in the life of a run.
pub(crate) struct StagedEntry {
    pub(crate) stage: &'static str,
    pub(crate) entry: Entry,
}

/// Where a replay keeps its rows.
pub trait Rows {
    /// The rows as they are now.
    fn reader(&self) -> &dyn Reader;

    /// Carries out the writes of an entry.
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

/// What of a replay counts.
#[derive(Clone, Copy)]
pub struct Timed {
    /// The entries of this stage only.
    pub stage: Option<&'static str>,
    /// Also writing what an entry changed, and giving back its memory; else `Engine::apply` alone.
    pub is_write_included: bool,
}

impl Recording {
    /// The rows that the entries begin with.
    #[must_use]
    pub fn base(&self) -> &MemoryStore {
        &self.base
    }

    /// The rows that the entries begin with, as one write.
    #[must_use]
    pub fn base_writes(&self) -> Writes {
        let rows = self.base.rows();
        rows.map(|(key, value)| (key.to_vec(), Some(value.to_vec())))
            .collect()
    }

    /// The rows that the entries lead to.
    #[must_use]
    pub fn rows(&self) -> &MemoryStore {
        &self.rows
    }

    /// An entry from the middle, where as many commands as may be are in one.
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

    /// Applies the entries to `rows`, which are those that they begin with. Returns how long what is timed took.
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

    /// Replays once and checks that it leads to the recorded rows, all of them and no other.
    ///
    /// # Panics
    /// When it does not.
    pub fn check_replay(&self, rows: &mut impl Rows) {
        let all = Timed {
            stage: None,
            is_write_included: true,
        };
        let time = self.replay(rows, all);
        assert!(time > Duration::ZERO, "a replay that takes no time is none");
        let mut expected = self.rows.rows();
        let whole = KeyRange {
            from: Vec::new(),
            to: vec![u8::MAX],
        };
        let scanned = rows
            .reader()
            .scan(&whole, Order::Ascending, &mut |key, value| {
                let found = Some((key, value));
                assert_eq!(found, expected.next(), "the replay went another way");
                ControlFlow::Continue(())
            });
        scanned.expect("a bench ends with its store");
        assert_eq!(None, expected.next(), "the replay left something out");
    }
}
