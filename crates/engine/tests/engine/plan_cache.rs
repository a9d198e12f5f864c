//! A plan's cache is bounded, and expired results are deleted in batches (W37).

use crate::invariants::{self, read};
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::{Namespace, PlanName, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{
    CACHED_BYTES_MAX, RETENTION_MS_DEFAULT, SWEEP_ROWS_MAX, TURN_READ_BYTES_MAX,
};
use flotilla_engine::rows::{
    CacheUsage, CachedResults, Plans, Quarantine, QuarantinedKind, Runs, TimerKey, TimerKind,
    Timers, encode_key, encode_record,
};
use flotilla_engine::store::{MemoryStore, Writes};
use flotilla_engine::{
    Applied, Body, CreateDefinition, DeleteWorkflow, ENGINE_VERSION, Effect, Engine, Entry,
    FireTimer, NodeId, Offer, RejectionCode, ReleaseQuarantined, Reply, Stamp, StartRun, SweepRuns,
};

const DEFINITION: &str = "define order 1\n plan pay cache(1000 {input.n})\n \
     executor pay main @charge\n start: run @plan/pay -> success=flo.Completed";

/// A replica that executes one plan, again and again.
struct World {
    engine: Engine,
    store: MemoryStore,
    raft_index: u64,
    now_ms: u64,
}

impl World {
    fn new() -> Self {
        let store = MemoryStore::default();
        let mut world = Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            now_ms: 1_000,
        };
        let action = Body::RegisterAction(Box::new(samples::plain_action()));
        let worker = samples::plain_worker(samples::worker());
        let worker = Body::RegisterWorker(Box::new(worker));
        world.apply(vec![definition(), action, worker], 0);
        world
    }

    fn apply(&mut self, bodies: Vec<Body>, slots: u32) -> Applied {
        let applied = self.try_apply(bodies, slots);
        assert!(applied.replies.iter().all(Result::is_ok));
        applied
    }

    fn try_apply(&mut self, bodies: Vec<Body>, slots: u32) -> Applied {
        self.raft_index += 1;
        let entry = Entry {
            stamp: Stamp {
                now_ms: self.now_ms,
                seed: self.raft_index,
                node: NodeId(1),
            },
            offers: vec![Offer {
                slots,
                ..samples::offer()
            }],
            commands: bodies
                .into_iter()
                .map(|body| {
                    body.into_command(Namespace::default_namespace())
                        .by_anyone()
                })
                .collect(),
        };
        let applied = self
            .engine
            .apply(&self.store, self.raft_index, &entry)
            .expect("memory does not fail");
        self.store.write(&applied.writes);
        applied
    }

    /// Runs the plan once for each key, with an output of the given size in bytes.
    fn run(&mut self, keys: std::ops::Range<u32>, output_bytes: usize) {
        let slots = keys.end - keys.start;
        let started = self.apply(keys.clone().map(start).collect(), slots);
        let tokens = started.effects.iter().filter_map(|effect| match effect {
            Effect::DeliverTask { assignment, .. } => Some(assignment.token),
            _ => None,
        });
        let text = format!("\"{}\"", "x".repeat(output_bytes - 2));
        let complete = |token| samples::plain_completion(token, Json::from_checked(text.clone()));
        let completed: Vec<Body> = tokens.map(complete).collect();
        assert_eq!(completed.len(), keys.len(), "nothing was cached");
        self.apply(completed, 0);
        self.continue_runs();
    }

    /// Fires the timers of runs whose work did not fit into the budget of its turn.
    fn continue_runs(&mut self) {
        let timers = invariants::rows::<Timers>(&self.store, &TimerKind::Continuation);
        let fire = |(timer, ())| Body::FireTimer(FireTimer { timer });
        self.apply(timers.into_iter().map(fire).collect(), 0);
    }

    fn usage(&self) -> CacheUsage {
        let key = (
            Namespace::default_namespace(),
            WorkflowName::new("order").expect("a name"),
            PlanName::new("pay").expect("a name"),
        );
        read::<Plans>(&self.store, &key)
            .expect("it was executed")
            .cache
    }

    fn cached_keys(&self) -> Vec<u32> {
        let results = invariants::rows::<CachedResults>(&self.store, &());
        let keys = results.iter().map(|(_, result)| result.key.parse());
        let mut keys: Vec<u32> = keys.map(|key| key.expect("a number")).collect();
        keys.sort_unstable();
        keys
    }

    /// The timer of the plan's next sweep.
    fn sweep(&self) -> Option<TimerKey> {
        let timers = invariants::rows::<Timers>(&self.store, &TimerKind::CacheExpiry);
        timers.into_iter().map(|(timer, ())| timer).next()
    }
}

#[test]
fn the_results_that_expire_first_give_way_when_a_plan_has_cached_all_it_may() {
    let mut world = World::new();
    let output_bytes = 1 << 20;
    let kept = u32::try_from(CACHED_BYTES_MAX >> 20).expect("a few");
    for key in 0..kept + 3 {
        world.run(key..key + 1, output_bytes);
        world.now_ms += 1;
    }
    assert_eq!(world.cached_keys(), (3..kept + 3).collect::<Vec<_>>());
    assert_eq!(world.usage().bytes, CACHED_BYTES_MAX);
    invariants::check(&world.store);
}

#[test]
fn a_result_that_many_would_have_to_give_way_to_is_not_cached() {
    let mut world = World::new();
    let small_bytes = 1 << 13;
    let kept = u32::try_from(CACHED_BYTES_MAX >> 13).expect("a few thousand");
    for first in (0..kept).step_by(128) {
        world.run(first..first + 128, small_bytes);
    }
    assert_eq!(world.usage().results_count, u64::from(kept));
    world.run(kept..kept + 1, 1 << 20);
    assert!(!world.cached_keys().contains(&kept));
    invariants::check(&world.store);
}

#[test]
fn expired_results_are_taken_away_in_bounded_pieces() {
    let mut world = World::new();
    let count = u32::try_from(SWEEP_ROWS_MAX).expect("a thousand") + 200;
    for first in (0..count).step_by(400) {
        world.run(first..first + 400, 10);
    }
    world.now_ms += 500;
    world.run(count..count + 1, 10);
    world.now_ms += 500;
    for left in [201, 1] {
        let timer = world.sweep().expect("a sweep is due");
        assert!(timer.due_ms <= world.now_ms);
        world.apply(vec![Body::FireTimer(FireTimer { timer })], 0);
        assert_eq!(world.usage().results_count, left);
        invariants::check(&world.store);
    }
    // The last one is not due yet; the next look at it is put off by the pause between sweeps.
    let timer = world.sweep().expect("one is left");
    assert_eq!(timer.due_ms, world.now_ms + 1_000);
    world.now_ms = timer.due_ms;
    world.apply(vec![Body::FireTimer(FireTimer { timer })], 0);
    assert_eq!((world.cached_keys().len(), world.sweep()), (0, None));
}

#[test]
fn the_results_of_a_deleted_workflow_are_read_and_deleted_within_the_budget_of_a_turn() {
    let mut world = World::new();
    let results_count = u32::try_from((2 * TURN_READ_BYTES_MAX) >> 20).expect("a few") + 2;
    for key in 0..results_count {
        world.run(key..key + 1, 1 << 20);
    }
    world.now_ms += RETENTION_MS_DEFAULT;
    for _ in 0..results_count {
        world.apply(vec![Body::SweepRuns(SweepRuns {})], 0);
    }
    assert!(invariants::rows::<Runs>(&world.store, &()).is_empty());
    let mut left = Vec::new();
    loop {
        let workflow = samples::workflow();
        let delete = Body::DeleteWorkflow(DeleteWorkflow { workflow });
        let reply = world.apply(vec![delete], 0).replies.remove(0);
        invariants::check(&world.store);
        left.push(world.cached_keys().len());
        let Ok(Reply::WorkflowDeleted(reply)) = reply else {
            panic!("expected a deletion, but it is {reply:?}");
        };
        if !reply.has_more {
            break;
        }
    }
    assert_eq!(left, [18, 2, 0]);
    assert_eq!(world.sweep(), None);
}

#[test]
fn a_sweep_that_panics_is_quarantined_and_the_plan_continues_until_it_is_released() {
    let mut world = World::new();
    world.run(0..1, 10);
    let (place, result) = invariants::rows::<CachedResults>(&world.store, &()).remove(0);
    let lost = encode_key::<CachedResults>(&place);
    world
        .store
        .write(&Writes::from([(lost.clone(), None::<&[u8]>)]));
    let timer = world.sweep().expect("a result is to expire");
    world.now_ms = timer.due_ms;

    let fire = vec![Body::FireTimer(FireTimer { timer })];
    let fired = world.try_apply(fire, 0).replies.remove(0);
    assert_eq!(
        fired.expect_err("the result is not there").code(),
        RejectionCode::Internal
    );
    assert!(read::<Quarantine>(&world.store, &(QuarantinedKind::Plan, timer.subject)).is_some());
    assert_eq!(world.sweep(), None);
    world.run(1..2, 10);
    assert_eq!(world.sweep(), None);

    let result = encode_record::<CachedResults>(&result);
    world.store.write(&Writes::from([(lost, Some(result))]));
    let retry = ReleaseQuarantined {
        kind: QuarantinedKind::Plan,
        number: timer.subject,
    };
    world.apply(vec![Body::ReleaseQuarantined(retry)], 0);
    let timer = world.sweep().expect("it is released");
    assert_eq!(timer.due_ms, world.now_ms);
    invariants::check(&world.store);
    world.apply(vec![Body::FireTimer(FireTimer { timer })], 0);
    assert_eq!(world.usage().results_count, 1);
    invariants::check(&world.store);
}

fn definition() -> Body {
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition: define(DEFINITION),
        source: DEFINITION.to_owned(),
        make_latest: false,
    }))
}

fn start(key: u32) -> Body {
    Body::StartRun(StartRun::new(
        WorkflowName::new("order").expect("a name"),
        Json::from_checked(format!("{{\"n\":{key}}}")),
    ))
}
