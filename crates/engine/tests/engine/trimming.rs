//! A run that lasts for years must not fill the disk (design rule 13).

use crate::invariants;
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::{
    ActionRunNumber, Namespace, OutcomeName, RunId, RunNumber, SignalType, WorkerId,
};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{HISTORY_EVENTS_MAX, HISTORY_SWEEP_EVENTS};
use flotilla_engine::rows::{
    self, ActionRuns, ActionRunsByRun, Quarantine, QuarantinedKind, RunRecord, Runs, TimerKey,
    Timers, encode_key, encode_prefix,
};
use flotilla_engine::store::{KeyRange, MemoryStore, Order, Reader, Writes};
use flotilla_engine::{
    Body, CancelRun, CompleteTask, ENGINE_VERSION, Effect, Engine, Entry, FireTimer, NodeId, Offer,
    Rejection, Reply, SignalRun, Stamp, SweepRuns, TaskToken,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A run in which everything that stores or shares a payload comes again and again.
const ROUNDS: &str = r#"define rounds 1 retention=1000
 plan pay round-robin
 executor pay one @charge retry(2 constant 2)
 executor pay two @missing
 start: run @charge input={"n":"$.input.n","text":"$.input.text"} poll(3 constant 2) retry(2 constant 1) -> success=share failure=share timeout=share
 share: run @charge input=$.steps.start.output retry(2 constant 3) -> success=ask failure=ask pending=ask
 ask: wait tick timeout=2 -> success=pay timeout=pay
 pay: run @plan/pay input=$.steps.ask.output -> success=start failure=rare pending=rare
 rare: run @charge input=$.steps.share.output -> success=start failure=start pending=start"#;

pub(crate) struct World {
    engine: Engine,
    pub(crate) store: MemoryStore,
    raft_index: u64,
    now_ms: u64,
    chance: u64,
    tokens: Vec<TaskToken>,
}

impl World {
    /// A run of the one workflow that `definition` is.
    pub(crate) fn new(definition: &str, seed: u64) -> Self {
        let store = MemoryStore::default();
        let mut world = Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            now_ms: 1_000,
            chance: seed,
            tokens: Vec::new(),
        };
        let worker = samples::plain_worker(WorkerId::new("w").expect("an id"));
        world.apply(vec![
            Body::RegisterAction(Box::new(samples::plain_action())),
            Body::RegisterWorker(Box::new(worker)),
            Body::CreateDefinition(Box::new(samples::plain_revision(define(definition)))),
        ]);
        world.apply(vec![Body::StartRun(samples::plain_start(
            "rounds",
            // Large enough that mappings share it.
            Json::from_checked(format!("{{\"n\":1,\"text\":\"{}\"}}", "t".repeat(2_000))),
        ))]);
        world
    }

    fn apply(&mut self, bodies: Vec<Body>) {
        let replies = self.try_apply(bodies);
        let refused: Vec<_> = replies.iter().filter(|one| one.is_err()).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }

    pub(crate) fn try_apply(&mut self, bodies: Vec<Body>) -> Vec<Result<Reply, Rejection>> {
        self.raft_index += 1;
        let namespace = Namespace::default_namespace();
        let offer = Offer {
            namespace: namespace.clone(),
            worker: WorkerId::new("w").expect("an id"),
            poll: self.raft_index,
            actions: vec![samples::action()],
            labels: BTreeMap::new(),
            slots: 1,
        };
        let command = |body: Body| body.into_command(namespace.clone()).by_anyone();
        let entry = Entry {
            stamp: Stamp {
                now_ms: self.now_ms,
                seed: self.raft_index,
                node: NodeId(1),
            },
            offers: vec![offer],
            commands: bodies.into_iter().map(command).collect(),
        };
        let applied = self.engine.apply(&self.store, self.raft_index, &entry);
        let applied = applied.expect("memory does not fail");
        self.store.write(&applied.writes);
        for effect in applied.effects {
            if let Effect::DeliverTask { assignment, .. } = effect {
                self.tokens.push(assignment.token);
            }
        }
        applied.replies
    }

    /// A number below `end`, by xorshift.
    fn pick(&mut self, end: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % end
    }

    fn run(&self) -> RunRecord {
        let run = rows::read::<Runs>(&self.store, &RunNumber(1));
        run.expect("memory does not fail")
            .expect("the run is there")
    }

    fn due(&self) -> Vec<TimerKey> {
        let mut due = Vec::new();
        let all = KeyRange::prefix(&encode_prefix::<Timers>(&()));
        rows::visit::<Timers>(&self.store, &all, Order::Ascending, |timer, ()| {
            if timer.due_ms <= self.now_ms {
                due.push(timer);
            }
            ControlFlow::Continue(())
        })
        .expect("memory does not fail");
        due
    }

    /// A worker reports, a signal comes, or time passes.
    fn step(&mut self) {
        let outcome = ["success", "failure", "pending", "success"]
            [usize::try_from(self.pick(4)).expect("small")];
        if let Some(token) = self.tokens.pop() {
            self.apply(vec![Body::CompleteTask(CompleteTask {
                token,
                outcome: OutcomeName::new(outcome).expect("an outcome"),
                output: Json::from_checked(format!("{{\"at\":{}}}", self.raft_index)),
                not_before: None,
                state_patch: None,
                usage: None,
            })]);
        }
        if self.pick(16) == 0 {
            self.apply(vec![Body::SignalRun(SignalRun {
                run_id: RunId::generated(RunNumber(1)),
                signal_type: SignalType::new("tick").expect("a type"),
                payload: Json::from_checked(self.raft_index.to_string()),
                scope: None,
                signal_id: None,
            })]);
        }
        self.now_ms += 1;
        for timer in self.due() {
            self.apply(vec![Body::FireTimer(FireTimer { timer })]);
        }
    }

    /// Loses the first action run that the next sweep would forget.
    fn lose_action_run(&mut self) {
        let swept_until = self.run().history.trimming.swept_action_runs;
        let prefix = encode_prefix::<ActionRunsByRun>(&RunNumber(1));
        let mut lost = None;
        let visit = |(_, number): (_, ActionRunNumber), _| {
            if number.0 <= swept_until {
                return ControlFlow::Continue(());
            }
            lost = Some(number);
            ControlFlow::Break(())
        };
        rows::visit::<ActionRunsByRun>(
            &self.store,
            &KeyRange::prefix(&prefix),
            Order::Ascending,
            visit,
        )
        .expect("memory does not fail");
        let mut writes = Writes::default();
        writes.delete(&encode_key::<ActionRuns>(&lost.expect("one is left")));
        self.store.write(&writes);
        self.engine = Engine::open(&self.store, ENGINE_VERSION).expect("memory does not fail");
    }

    /// The rows of each table, by its number.
    fn counts(&self) -> BTreeMap<u8, u64> {
        let mut counts = BTreeMap::new();
        let all = KeyRange {
            from: Vec::new(),
            to: vec![0xF0],
        };
        self.store
            .scan(&all, Order::Ascending, &mut |key, _| {
                *counts.entry(key[0]).or_default() += 1;
                ControlFlow::Continue(())
            })
            .expect("memory does not fail");
        counts
    }
}

#[test]
fn a_panic_in_the_sweep_of_a_history_quarantines_the_run() {
    let mut world = World::new(ROUNDS, 7);
    while world.run().history.trimming.swept_until == 0 {
        world.step();
    }
    world.lose_action_run();
    let mut is_refused = false;
    while !is_refused {
        // A step panics if a command of it is rejected.
        is_refused = catch_unwind(AssertUnwindSafe(|| world.step())).is_err();
    }
    let quarantined = rows::read::<Quarantine>(&world.store, &(QuarantinedKind::Run, 1));
    assert!(quarantined.expect("memory does not fail").is_some());
}

#[test]
fn a_run_that_loops_for_ever_keeps_a_bounded_number_of_rows() {
    const ROWS_MAX: u64 = HISTORY_EVENTS_MAX + 2 * HISTORY_SWEEP_EVENTS;
    let mut world = World::new(ROUNDS, 7);
    let mut next = 5_000;
    while world.run().history.events_count < 120_000 {
        world.step();
        let events_count = world.run().history.events_count;
        if events_count >= next {
            next += 5_000;
            invariants::check(&world.store);
            for (table, count) in world.counts() {
                assert!(
                    count < ROWS_MAX,
                    "{count} rows of table {table} after {events_count} events"
                );
            }
        }
    }
    world.apply(vec![Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced: true,
    })]);
    world.now_ms += 1_000;
    for _ in 0..ROWS_MAX / 100 {
        world.apply(vec![Body::SweepRuns(SweepRuns {})]);
    }
    invariants::check(&world.store);
    let left: u64 = world.counts().values().sum();
    assert!(left < 30, "{left} rows are left: {:?}", world.counts());
}
