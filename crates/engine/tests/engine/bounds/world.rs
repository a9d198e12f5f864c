//! A replica that holds every entry to its bounds.

use super::{create, large, start};
use crate::samples;
use crate::script::define;
use flotilla_engine::definition::Definition;
use flotilla_engine::ids::{Namespace, RunNumber, WorkerId};
use flotilla_engine::limits::{
    ENTRY_BYTES_MAX, ENTRY_READ_BYTES_MAX, ENTRY_ROWS_MAX, MAPPING_READ_BYTES_MAX,
};
use flotilla_engine::rows::{
    self, RunRecord, Runs, Table, TimerKey, Timers, encode_key, encode_prefix, encode_record,
};
use flotilla_engine::store::{KeyRange, MemoryStore, Order, Writes};
use flotilla_engine::{
    Body, ENGINE_VERSION, Effect, Engine, Entry, FireTimer, NodeId, Offer, Rejection, Reply, Stamp,
    TaskToken,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What one entry may write at most, all in all. In bytes.
const WRITES_BYTES_MAX: usize = 16 << 20;

/// A replica that is driven as a leader drives it, and holds every entry to its bounds.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) store: MemoryStore,
    pub(super) raft_index: u64,
    pub(super) now_ms: u64,
    /// Tokens of the tasks that were handed out and not reported.
    pub(super) tokens: Vec<TaskToken>,
    /// The largest entry, by what it wrote. In bytes.
    pub(super) written_most: usize,
}

impl World {
    pub(super) fn new() -> Self {
        let store = MemoryStore::default();
        Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            now_ms: 1_000,
            tokens: Vec::new(),
            written_most: 0,
        }
    }

    /// Applies an entry, with offers for tasks of the sample action.
    pub(super) fn apply(&mut self, bodies: Vec<Body>, slots: u32) -> Vec<Result<Reply, Rejection>> {
        self.raft_index += 1;
        let commands = bodies
            .into_iter()
            .map(|body| {
                body.into_command(Namespace::default_namespace())
                    .by_anyone()
            })
            .collect();
        let offer = Offer {
            namespace: Namespace::default_namespace(),
            worker: WorkerId::new("w").expect("an id"),
            poll: 1,
            actions: vec![samples::action()],
            labels: BTreeMap::new(),
            slots,
        };
        let entry = Entry {
            stamp: Stamp {
                now_ms: self.now_ms,
                seed: self.raft_index,
                node: NodeId(1),
            },
            offers: vec![offer],
            commands,
        };
        let applied = self.engine.apply(&self.store, self.raft_index, &entry);
        let applied = applied.expect("memory does not fail");
        let sizes = applied.writes.iter();
        let written: usize = sizes
            .map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len))
            .sum();
        assert!(written <= WRITES_BYTES_MAX, "{written} bytes are written");
        let read_max = ENTRY_READ_BYTES_MAX + MAPPING_READ_BYTES_MAX + ENTRY_BYTES_MAX;
        assert!(applied.spent.read_bytes <= read_max, "{:?}", applied.spent);
        assert!(
            applied.spent.rows <= 2 * ENTRY_ROWS_MAX,
            "{:?}",
            applied.spent
        );
        self.written_most = self.written_most.max(written);
        self.store.write(&applied.writes);
        for effect in applied.effects {
            if let Effect::DeliverTask { assignment, .. } = effect {
                self.tokens.push(assignment.token);
            }
        }
        applied.replies
    }

    pub(super) fn accept(&mut self, body: Body) -> Reply {
        let reply = self.apply(vec![body], 0).remove(0);
        reply.unwrap_or_else(|rejection| panic!("expected a reply, but {rejection}"))
    }

    /// Fires what is due, entry by entry, until nothing is; returns how many entries that took.
    pub(super) fn run_until_idle(&mut self) -> usize {
        for count in 0..10_000 {
            let due = self.due();
            if due.is_empty() {
                return count;
            }
            let fire = |timer| Body::FireTimer(FireTimer { timer });
            self.apply(due.into_iter().map(fire).collect(), 0);
        }
        panic!("something is always due");
    }

    pub(super) fn due(&self) -> Vec<TimerKey> {
        let mut due = Vec::new();
        let all = KeyRange::prefix(&encode_prefix::<Timers>(&()));
        let visited = rows::visit::<Timers>(&self.store, &all, Order::Ascending, |timer, ()| {
            if timer.due_ms <= self.now_ms {
                due.push(timer);
            }
            ControlFlow::Continue(())
        });
        visited.expect("memory does not fail");
        due
    }

    pub(super) fn run(&self, number: u64) -> RunRecord {
        let run = rows::read::<Runs>(&self.store, &RunNumber(number));
        run.expect("memory does not fail")
            .expect("the run is there")
    }

    pub(super) fn create(&mut self, definition: Definition) {
        self.accept(create(definition));
    }

    /// Applies an entry whose budget is used up before `bodies`.
    pub(super) fn apply_spent(&mut self, bodies: Vec<Body>) {
        let text = r#"define hammer 1
 start: run @missing input={"all":"$.input"} -> failure=start"#;
        self.create(define(text));
        let starts = (0..8).map(|_| start("hammer", large(100_000)));
        let replies = self.apply(starts.chain(bodies).collect(), 0);
        for reply in &replies[8..] {
            assert!(reply.is_ok(), "{reply:?}");
        }
        assert_eq!(replies[7], Err(Rejection::EntryFull));
    }

    /// Applies an entry, then another one of the commands that found no budget left, and so on, as a leader does.
    /// Returns how many entries that took.
    pub(super) fn apply_until_accepted(&mut self, mut bodies: Vec<Body>) -> usize {
        let mut entries_count = 0;
        while !bodies.is_empty() {
            entries_count += 1;
            let replies = self.apply(bodies.clone(), 0);
            let rejected = bodies.into_iter().zip(replies).filter_map(|(body, reply)| {
                let rejection = reply.err()?;
                assert_eq!(rejection, Rejection::EntryFull);
                Some(body)
            });
            bodies = rejected.collect();
        }
        entries_count
    }

    /// Replaces a row behind the engine's back.
    pub(super) fn plant<T: Table>(&mut self, key: &T::Key, record: &T::Record) {
        let mut writes = Writes::default();
        writes.put(&encode_key::<T>(key), &encode_record::<T>(record));
        self.store.write(&writes);
        // An engine without this row in its cache.
        self.engine = Engine::open(&self.store, ENGINE_VERSION).expect("memory does not fail");
    }
}
