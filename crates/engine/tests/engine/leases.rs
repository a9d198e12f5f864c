//! When the leases of a worker end, with more of them than a script would list (A4).

use crate::replica::Replica;
use crate::script::define;
use crate::{invariants, samples};
use flotilla_engine::definition::{AttributeKind, Path, Root, SearchAttribute, Segment};
use flotilla_engine::ids::{ActionRunNumber, AttributeName, RunNumber, WorkerId, WorkerNumber};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{LEASES_BEGUN_MAX, LEASES_EXPIRED_MAX, RECORD_BYTES_MAX};
use flotilla_engine::rows::{
    ActionRunRecord, ActionRunStatus, ActionRuns, AttributeValue, LeaseBlock, LeasePlace,
    LeaseWatch, Quarantine, QuarantinedKind, Runs, TimerKey, TimerKind, Timers, WorkerActivities,
    WorkerLeases, encode_key, encode_record,
};
use flotilla_engine::store::Writes;
use flotilla_engine::{
    Body, CompleteTask, ENGINE_VERSION, FireTimer, Offer, Rejection, ReleaseQuarantined, Reply,
    TaskToken, TouchTask, view,
};
use std::collections::BTreeMap;

/// How long a lease lasts, in milliseconds.
const LEASE_MS: u64 = 30_000;

fn worker() -> WorkerId {
    WorkerId::new("w").expect("an id")
}

/// A replica with an action and a worker.
fn new() -> Replica {
    let mut replica = Replica::new();
    let mut action = samples::plain_action();
    action.timeout_ms = LEASE_MS;
    let action = Body::RegisterAction(Box::new(action));
    replica.ask(action).expect("accepted");
    register(&mut replica, 1);
    replica
}

fn register(replica: &mut Replica, incarnation: u64) {
    let mut worker = samples::plain_worker(worker());
    worker.incarnation = incarnation;
    let register = Body::RegisterWorker(Box::new(worker));
    replica.ask(register).expect("accepted");
}

fn offer() -> Offer {
    Offer {
        namespace: samples::namespace(),
        worker: worker(),
        poll: 1,
        actions: vec![samples::action()],
        labels: BTreeMap::new(),
        slots: 1,
    }
}

/// The worker takes a new task.
fn take(replica: &mut Replica) -> ActionRunNumber {
    let invoke = samples::plain_invocation();
    let invoke = Body::InvokeAction(invoke).into_command(samples::namespace());
    match replica.apply(vec![offer()], invoke) {
        Ok(Reply::ActionInvoked(invoked)) => invoked.action_run,
        other => panic!("expected a task, but {other:?}"),
    }
}

fn token(replica: &Replica, task: ActionRunNumber) -> TaskToken {
    let found = view::assignment(&replica.store, task).expect("memory does not fail");
    found.expect("the task is leased").0.token
}

fn touch(replica: &mut Replica, task: ActionRunNumber, extend_ms: u64) -> Reply {
    let token = token(replica, task);
    let touch = Body::TouchTask(TouchTask { token, extend_ms });
    replica.ask(touch).expect("the lease is held")
}

fn watch(replica: &Replica) -> LeaseWatch {
    let key = (samples::namespace(), worker());
    let activity = invariants::read::<WorkerActivities>(&replica.store, &key);
    activity.expect("the worker is registered").lease_watch
}

fn leases_count(replica: &Replica) -> usize {
    invariants::leases(&replica.store, &()).len()
}

/// Fires the timer of the leases, if one is set.
fn fire(replica: &mut Replica) {
    let timers = invariants::rows::<Timers>(&replica.store, &TimerKind::LeaseExpiry);
    let timers: Vec<TimerKey> = timers.into_iter().map(|(timer, ())| timer).collect();
    assert!(timers.len() <= 1, "one worker has one timer: {timers:?}");
    for timer in timers {
        replica.now_ms = replica.now_ms.max(timer.due_ms);
        let fire = Body::FireTimer(FireTimer { timer });
        replica.ask(fire).expect("it is due");
    }
    invariants::check(&replica.store);
}

#[test]
fn leases_that_end_at_the_same_time_expire_in_bounded_batches() {
    let mut replica = new();
    for _ in 0..LEASES_EXPIRED_MAX + 50 {
        take(&mut replica);
    }
    fire(&mut replica);
    assert_eq!(leases_count(&replica), 50);
    fire(&mut replica);
    assert_eq!((leases_count(&replica), watch(&replica).due_ms), (0, None));
}

#[test]
fn a_search_for_the_first_end_skips_the_leases_that_are_over() {
    let mut replica = new();
    let long = take(&mut replica);
    touch(&mut replica, long, 100 * LEASE_MS);
    let first_due_ms = watch(&replica).due_ms;
    for _ in 0..LEASES_BEGUN_MAX {
        replica.now_ms += 1;
        let task = take(&mut replica);
        let complete = CompleteTask {
            token: token(&replica, task),
            outcome: samples::outcome(),
            output: Json::null(),
            not_before: None,
            state_patch: None,
            usage: None,
        };
        replica.ask(Body::CompleteTask(complete)).expect("held");
    }
    let found = watch(&replica);
    assert_eq!(found.due_ms, first_due_ms, "a timer is not postponed");
    let last_ms = replica.now_ms + LEASE_MS;
    assert!(found.ends_from_ms + 10 > last_ms, "{found:?}, {last_ms}");
    assert!(found.begun_count < 10, "{found:?}");
    fire(&mut replica);
    let bound = LeasePlace {
        expires_at_ms: found.ends_from_ms,
        task: ActionRunNumber(0),
    };
    let bound = encode_key::<WorkerLeases>(&(WorkerNumber(1), LeaseBlock::of(bound)));
    assert_eq!(replica.beginnings, [bound]);
    let end_ms = 1_000 + 100 * LEASE_MS;
    let left = watch(&replica);
    assert_eq!((left.ends_from_ms, left.due_ms), (end_ms, Some(end_ms)));
    fire(&mut replica);
    assert_eq!(leases_count(&replica), 0);
}

#[test]
fn a_former_process_cannot_move_the_end_of_a_lease_that_is_being_freed() {
    let mut replica = new();
    // More than one command frees.
    for _ in 0..LEASES_EXPIRED_MAX + 50 {
        take(&mut replica);
    }
    register(&mut replica, 2);
    let last = ActionRunNumber(LEASES_EXPIRED_MAX as u64 + 50);
    let Reply::LeaseExtended(extended) = touch(&mut replica, last, 1) else {
        panic!("a touch is answered with the end of the lease");
    };
    assert_eq!(extended.expires_at_ms, 1_000 + LEASE_MS);
    invariants::check(&replica.store);
}

#[test]
fn a_task_whose_expiry_panics_does_not_keep_the_leases_behind_it() {
    let mut replica = new();
    let tasks = [take(&mut replica), take(&mut replica)];
    let sound = invariants::read::<ActionRuns>(&replica.store, &tasks[0]);
    let sound = sound.expect("it is leased");
    let mut damaged = sound.clone();
    damaged.status = ActionRunStatus::Completed;
    plant(&mut replica, tasks[0], &damaged);
    replica.now_ms += LEASE_MS;
    let timers = invariants::rows::<Timers>(&replica.store, &TimerKind::LeaseExpiry);
    let timer = timers[0].0;
    let fire_timer = |replica: &mut Replica| replica.ask(Body::FireTimer(FireTimer { timer }));
    let panicked = fire_timer(&mut replica);
    assert!(
        matches!(panicked, Err(Rejection::Internal(_))),
        "{panicked:?}"
    );
    fire_timer(&mut replica).expect("the damaged task is passed");
    assert_eq!((leases_count(&replica), watch(&replica).due_ms), (1, None));

    let suspended = invariants::read::<ActionRuns>(&replica.store, &tasks[0]);
    let suspended = suspended.and_then(|task| task.lease).expect("it is kept");
    assert!(suspended.is_suspended(), "{suspended:?}");
    let mended = ActionRunRecord {
        lease: Some(suspended),
        ..sound
    };
    plant(&mut replica, tasks[0], &mended);
    let release = ReleaseQuarantined {
        kind: QuarantinedKind::ActionRun,
        number: tasks[0].0,
    };
    let release = Body::ReleaseQuarantined(release);
    replica.ask(release).expect("it is quarantined");
    invariants::check(&replica.store);
    fire(&mut replica);
    assert_eq!(leases_count(&replica), 0);
}

/// Replaces an action run behind the engine's back.
fn plant(replica: &mut Replica, task: ActionRunNumber, record: &ActionRunRecord) {
    let row = (
        encode_key::<ActionRuns>(&task),
        Some(encode_record::<ActionRuns>(record)),
    );
    replica.store.write(&Writes::from([row]));
    replica.decide_as(ENGINE_VERSION);
}

#[test]
fn a_panic_in_writing_a_run_whose_lease_has_expired_quarantines_the_run_and_not_the_worker() {
    let mut replica = new();
    let mut definition = define(&format!(
        "define order 1\n start: run @{} -> timeout=next\n next: wait go",
        samples::action()
    ));
    definition.search_attributes = vec![SearchAttribute {
        name: AttributeName::new("x").expect("a name"),
        kind: AttributeKind::String,
        from: Path {
            root: Root::Input,
            segments: vec![Segment::Field("x".to_owned())],
        },
    }];
    let create = samples::plain_revision(definition);
    let create = Body::CreateDefinition(Box::new(create));
    replica.ask(create).expect("it is sound");
    let start = Body::StartRun(samples::plain_start(
        "order",
        Json::from_checked("{}".to_owned()),
    ));
    let start = start.into_command(samples::namespace());
    replica.apply(vec![offer()], start).expect("it is enabled");
    let other = take(&mut replica);
    let run = invariants::read::<Runs>(&replica.store, &RunNumber(1));
    let mut run = run.expect("it was started");
    let value = AttributeValue::String("x".repeat(RECORD_BYTES_MAX));
    run.attributes.insert(0, value);
    let row = (
        encode_key::<Runs>(&RunNumber(1)),
        Some(encode_record::<Runs>(&run)),
    );
    replica.store.write(&Writes::from([row]));
    replica.decide_as(ENGINE_VERSION);

    replica.now_ms += LEASE_MS;
    let timers = invariants::rows::<Timers>(&replica.store, &TimerKind::LeaseExpiry);
    let fire = Body::FireTimer(FireTimer { timer: timers[0].0 });
    let panicked = replica.ask(fire.clone());
    assert!(
        matches!(panicked, Err(Rejection::Internal(_))),
        "{panicked:?}"
    );
    let quarantined = invariants::rows::<Quarantine>(&replica.store, &());
    let quarantined: Vec<_> = quarantined.into_iter().map(|(item, _)| item).collect();
    assert_eq!(quarantined, [(QuarantinedKind::Run, 1)]);
    replica.ask(fire).expect("the run's task is passed");
    let other = invariants::read::<ActionRuns>(&replica.store, &other);
    let other = other.expect("it is kept").status;
    assert_eq!(other, ActionRunStatus::TimedOut);
}
