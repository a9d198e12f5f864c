//! Runs commands through an engine in memory, and keeps the entries.

use crate::recording::{Recording, StagedEntry};
use crate::requests;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::rows::{RunStatus, Runs, encode_prefix, visit};
use flotilla_engine::store::{KeyRange, MemoryStore, Order};
use flotilla_engine::{
    Applied, BeginTerm, Body, Command, ENGINE_VERSION, Engine, Entry, NodeId, Offer, Stamp,
};
use std::ops::ControlFlow;

/// The leader: it stamps entries, and every command that it proposes must be accepted.
pub(crate) struct Recorder {
    engine: Engine,
    rows: MemoryStore,
    base: MemoryStore,
    base_index: u64,
    raft_index: u64,
    now_ms: u64,
    entries: Vec<StagedEntry>,
    sent_count: u128,
}

impl Recorder {
    /// A cluster with a leader, after `setup`, which is not recorded.
    pub(crate) fn begin(setup: Vec<Body>) -> Self {
        let rows = MemoryStore::default();
        let mut recorder = Self {
            engine: Engine::open(&rows, ENGINE_VERSION).expect("memory does not fail"),
            rows,
            base: MemoryStore::default(),
            base_index: 0,
            raft_index: 0,
            now_ms: 1_700_000_000_000,
            entries: Vec::new(),
            sent_count: 0,
        };
        let term = Body::BeginTerm(BeginTerm { term: 1 });
        for body in std::iter::once(term).chain(setup) {
            recorder.apply("setup", Vec::new(), vec![requests::command(body)]);
        }
        recorder.entries.clear();
        recorder.base = recorder.rows.clone();
        recorder.base_index = recorder.raft_index;
        recorder
    }

    /// A command as the client library sends it.
    pub(crate) fn sent(&mut self, body: Body) -> Command {
        self.sent_count += 1;
        requests::sent(body, self.sent_count)
    }

    /// Applies an entry, one millisecond after the previous one.
    pub(crate) fn apply(
        &mut self,
        stage: &'static str,
        offers: Vec<Offer>,
        commands: Vec<Command>,
    ) -> Applied {
        self.raft_index += 1;
        self.now_ms += 1;
        let entry = Entry {
            stamp: Stamp {
                now_ms: self.now_ms,
                seed: self.raft_index.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                node: NodeId(1),
            },
            offers,
            commands: commands.into_iter().map(Command::by_anyone).collect(),
        };
        let applied = self.engine.apply(&self.rows, self.raft_index, &entry);
        let applied = applied.expect("memory does not fail");
        for reply in &applied.replies {
            assert!(reply.is_ok(), "expected a reply, but got {reply:?}");
        }
        self.rows.write(&applied.writes);
        self.entries.push(StagedEntry { stage, entry });
        applied
    }

    /// Advances the time, in milliseconds.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    /// The cluster's time, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The current rows.
    pub(crate) fn rows(&self) -> &MemoryStore {
        &self.rows
    }

    /// Checks that this many runs exist, and that all of them are completed.
    pub(crate) fn expect_completed(&self, runs: usize) {
        let mut completed = 0;
        let all = KeyRange::prefix(&encode_prefix::<Runs>(&()));
        let visited = visit::<Runs>(&self.rows, &all, Order::Ascending, |number, run| {
            let status = run.status;
            assert_eq!(
                status,
                RunStatus::Ended(TerminalStatus::Completed),
                "{number:?}"
            );
            completed += 1;
            ControlFlow::Continue(())
        });
        visited.expect("memory does not fail");
        assert_eq!(completed, runs, "expected each run to be there and to end");
    }

    /// The recording.
    pub(crate) fn finish(self) -> Recording {
        Recording {
            base: self.base,
            base_index: self.base_index,
            entries: self.entries,
            rows: self.rows,
        }
    }
}
