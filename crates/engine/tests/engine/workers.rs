//! The worker registry at its bounds (A4, A20): what a script would need thousands of names for.

use crate::replica::Replica;
use crate::{invariants, samples};
use flotilla_engine::ids::{ActionRunNumber, WorkerId, WorkerNumber};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{LEASES_FREED_MAX, WORKERS_MAX};
use flotilla_engine::rows::{
    ActionRunRecord, ActionRunStatus, ActionRuns, GoneWorkers, Quarantine, QuarantineRecord,
    QuarantinedKind, ReadyActions, TimerKey, TimerKind, Timers, WorkerActivities,
    WorkerActivityRecord, WorkerCounts, Workers, encode_key, encode_record,
};
use flotilla_engine::store::Writes;
use flotilla_engine::{
    AssignTasks, Body, Departure, DeregisterWorker, FireTimer, HeartbeatWorker, Offer, Rejection,
    ReleaseQuarantined, ReleaseWorker, Reply, reply, view,
};
use std::collections::BTreeMap;

fn id(number: u64) -> WorkerId {
    WorkerId::new(format!("w{number}")).expect("an id")
}

fn register(number: u64) -> Body {
    Body::RegisterWorker(Box::new(samples::plain_worker(id(number))))
}

fn release(number: u64) -> Body {
    Body::ReleaseWorker(ReleaseWorker {
        worker_id: id(number),
        incarnation: 1,
        departure: Departure::Lost {
            last_heartbeat_at_ms: last_heartbeat_at_ms(number),
        },
    })
}

/// When worker `number` of a full namespace registered.
fn last_heartbeat_at_ms(number: u64) -> u64 {
    1_001 + number
}

/// A replica with as many workers as a namespace may have, one heard each millisecond.
fn full() -> Replica {
    let mut replica = Replica::new();
    for number in 0..WORKERS_MAX {
        replica.now_ms = last_heartbeat_at_ms(number);
        replica.ask(register(number)).expect("there is room");
    }
    replica
}

fn is_there(replica: &Replica, number: u64) -> bool {
    replica.has::<Workers>(&(samples::namespace(), id(number)))
}

#[test]
fn in_a_full_namespace_the_longest_silent_worker_is_evicted_without_a_scan() {
    let mut replica = full();
    let refusal = Rejection::WorkerLimitExceeded(samples::namespace());
    assert_eq!(replica.ask(register(10_001)), Err(refusal.clone()));
    // Neither a name that sorts first nor one that fell silent first: the one heard longest ago.
    for number in [7, 5, 6] {
        replica.ask(release(number)).expect("it is registered");
    }
    let heard = Reply::HeartbeatRecorded(reply::HeartbeatRecorded { is_draining: false });
    assert_eq!(replica.ask(register(10_001)), Ok(heard.clone()));
    assert!(replica.rows <= 1, "{} rows", replica.rows);
    assert_eq!(
        [5, 6, 7].map(|number| is_there(&replica, number)),
        [false, true, true]
    );
    // One that is heard again stays, one that says goodbye makes room.
    let heartbeat = HeartbeatWorker {
        worker_id: id(6),
        incarnation: 1,
        load: 0,
    };
    assert_eq!(
        replica.ask(Body::HeartbeatWorker(heartbeat)),
        Ok(heard.clone())
    );
    assert_eq!(replica.ask(register(10_002)), Ok(heard.clone()));
    assert_eq!(
        [6, 7].map(|number| is_there(&replica, number)),
        [true, false]
    );
    assert_eq!(replica.ask(register(10_003)), Err(refusal));
    let deregister = DeregisterWorker {
        worker_id: id(9),
        incarnation: None,
    };
    assert_eq!(
        replica.ask(Body::DeregisterWorker(deregister)),
        Ok(Reply::Done(reply::Done {}))
    );
    assert_eq!(replica.ask(register(10_003)), Ok(heard));
    let count = invariants::read::<WorkerCounts>(&replica.store, &samples::namespace());
    assert_eq!(count, Some(WORKERS_MAX));
    invariants::check(&replica.store);
}

/// Tasks that need three batches to be freed.
const HELD: usize = 2 * LEASES_FREED_MAX + 100;

fn offer(slots: usize) -> Offer {
    Offer {
        namespace: samples::namespace(),
        worker: id(0),
        poll: 1,
        actions: vec![samples::action()],
        labels: BTreeMap::new(),
        slots: u32::try_from(slots).expect("few"),
    }
}

/// A replica in which worker 0 holds [`HELD`] tasks, under number 1.
fn holding() -> Replica {
    let mut replica = Replica::new();
    let action = Body::RegisterAction(Box::new(samples::plain_action()));
    replica.ask(action).expect("accepted");
    replica.ask(register(0)).expect("accepted");
    for _ in 0..HELD {
        let invoke = samples::plain_invocation();
        let invoke = Body::InvokeAction(invoke).into_command(samples::namespace());
        replica.apply(vec![offer(1)], invoke).expect("accepted");
    }
    assert_eq!(held(&replica, 1), HELD);
    replica
}

/// How many tasks are leased under a worker's number.
fn held(replica: &Replica, number: u64) -> usize {
    invariants::leases(&replica.store, &WorkerNumber(number)).len()
}

/// How many tasks wait for a worker.
fn waiting(replica: &Replica) -> u64 {
    let key = (samples::namespace(), samples::action());
    let ready = invariants::read::<ReadyActions>(&replica.store, &key);
    ready.map_or(0, |ready| ready.tasks_count)
}

fn activity(replica: &Replica) -> WorkerActivityRecord {
    let key = (samples::namespace(), id(0));
    let activity = invariants::read::<WorkerActivities>(&replica.store, &key);
    activity.expect("the worker is registered")
}

/// The timer that frees the leases of the worker that is gone.
fn timer(replica: &Replica) -> Option<TimerKey> {
    let timers = invariants::rows::<Timers>(&replica.store, &TimerKind::WorkerGone);
    assert!(timers.len() <= 1, "{timers:?}");
    timers.first().map(|(timer, ())| *timer)
}

/// Frees the next leases, as the leader does.
fn fire(replica: &mut Replica) {
    let timer = timer(replica).expect("leases are left");
    let fire = Body::FireTimer(FireTimer { timer });
    replica.ask(fire).expect("it is due");
    invariants::check(&replica.store);
}

fn deregister(number: u64) -> Body {
    Body::DeregisterWorker(DeregisterWorker {
        worker_id: id(number),
        incarnation: None,
    })
}

fn register_newer() -> Body {
    let mut newer = samples::plain_worker(id(0));
    newer.incarnation = 2;
    Body::RegisterWorker(Box::new(newer))
}

#[test]
fn however_many_leases_a_worker_leaves_behind_an_entry_frees_a_bounded_number() {
    let release = Body::ReleaseWorker(ReleaseWorker {
        worker_id: id(0),
        incarnation: 1,
        departure: Departure::Stopped,
    });
    for goes in [deregister(0), register_newer(), release] {
        let mut replica = holding();
        replica.ask(goes).expect("accepted");
        invariants::check(&replica.store);
        let batch = LEASES_FREED_MAX;
        assert_eq!(held(&replica, 1), HELD - batch);
        assert_eq!(waiting(&replica), batch as u64);
        fire(&mut replica);
        assert_eq!(held(&replica, 1), HELD - 2 * batch);
        assert!(replica.rows <= 2 * batch, "{} rows", replica.rows);
        fire(&mut replica);
        assert_eq!((held(&replica, 1), timer(&replica)), (0, None));
        assert!(!replica.has::<GoneWorkers>(&WorkerNumber(1)));
        assert_eq!(waiting(&replica), HELD as u64);
    }
}

#[test]
fn the_attempts_of_a_lost_worker_fail_in_batches_too() {
    let mut replica = holding();
    let release = Body::ReleaseWorker(ReleaseWorker {
        worker_id: id(0),
        incarnation: 1,
        departure: Departure::Lost {
            last_heartbeat_at_ms: 1_000,
        },
    });
    replica.ask(release).expect("accepted");
    invariants::check(&replica.store);
    assert_eq!(held(&replica, 1), HELD - LEASES_FREED_MAX);
    fire(&mut replica);
    fire(&mut replica);
    assert_eq!((held(&replica, 1), timer(&replica)), (0, None));
    for number in 1..=HELD as u64 {
        let record = invariants::read::<ActionRuns>(&replica.store, &ActionRunNumber(number));
        let record = record.expect("it is open");
        let code = record.error.as_ref().map(|error| error.code.as_str());
        // The second attempt begins after the backoff.
        assert_eq!((record.attempt, code), (1, Some("node_lost")), "{number}");
    }
}

#[test]
fn what_a_newer_process_takes_meanwhile_stays_its_own() {
    let mut replica = holding();
    replica.ask(register_newer()).expect("accepted");
    let assign = AssignTasks {
        action: samples::action(),
    };
    let assign = Body::AssignTasks(assign).into_command(samples::namespace());
    replica.apply(vec![offer(50)], assign).expect("accepted");
    assert_eq!(
        (held(&replica, 2), activity(&replica).leases_count),
        (50, 50)
    );
    fire(&mut replica);
    fire(&mut replica);
    assert_eq!((held(&replica, 1), held(&replica, 2)), (0, 50));
}

#[test]
fn a_former_process_may_report_until_its_lease_is_freed_and_counts_for_no_other() {
    let mut replica = holding();
    replica.ask(register_newer()).expect("accepted");
    let last = ActionRunNumber(HELD as u64);
    let found = view::assignment(&replica.store, last).expect("memory does not fail");
    let (assignment, _) = found.expect("its lease is left");
    let complete = samples::plain_completion(assignment.token, Json::null());
    replica.ask(complete).expect("the token is valid");
    invariants::check(&replica.store);
    let activity = activity(&replica);
    assert_eq!((activity.leases_count, activity.tasks_completed), (0, 0));
    fire(&mut replica);
    fire(&mut replica);
    assert_eq!(waiting(&replica), HELD as u64 - 1);
}

#[test]
fn a_task_whose_release_panics_does_not_keep_the_leases_behind_it() {
    let mut replica = holding();
    let bad = ActionRunNumber(LEASES_FREED_MAX as u64 + 10);
    let mut damaged: ActionRunRecord =
        invariants::read::<ActionRuns>(&replica.store, &bad).expect("it is leased");
    damaged.status = ActionRunStatus::Completed;
    replica.store.write(&Writes::from([(
        encode_key::<ActionRuns>(&bad),
        Some(encode_record::<ActionRuns>(&damaged)),
    )]));
    replica.decide_as(flotilla_engine::ENGINE_VERSION);
    replica.ask(deregister(0)).expect("accepted");
    let fire = |replica: &mut Replica| {
        let timer = timer(replica)?;
        Some(replica.ask(Body::FireTimer(FireTimer { timer })))
    };
    let panicked = fire(&mut replica).expect("leases are left");
    assert!(
        matches!(panicked, Err(Rejection::Internal(_))),
        "{panicked:?}"
    );
    for _ in 0..2 {
        fire(&mut replica)
            .expect("leases are left")
            .expect("the damaged task is passed");
    }
    assert_eq!((held(&replica, 1), timer(&replica)), (1, None));
    assert_eq!(waiting(&replica), HELD as u64 - 1);

    damaged.status = ActionRunStatus::Running;
    replica.store.write(&Writes::from([(
        encode_key::<ActionRuns>(&bad),
        Some(encode_record::<ActionRuns>(&damaged)),
    )]));
    replica.decide_as(flotilla_engine::ENGINE_VERSION);
    let release = ReleaseQuarantined {
        kind: QuarantinedKind::ActionRun,
        number: bad.0,
    };
    replica
        .ask(Body::ReleaseQuarantined(release))
        .expect("it is quarantined");
    assert_eq!((held(&replica, 1), waiting(&replica)), (0, HELD as u64));
    invariants::check(&replica.store);
}

#[test]
fn the_leases_of_a_quarantined_worker_that_is_gone_are_freed_once_it_is_released() {
    let mut replica = holding();
    replica.ask(deregister(0)).expect("accepted");
    let item = (QuarantinedKind::Worker, 1);
    let record = QuarantineRecord {
        at_ms: 0,
        raft_index: 0,
    };
    let timer = timer(&replica).expect("leases are left");
    replica.store.write(&Writes::from([
        (encode_key::<Timers>(&timer), None),
        (
            encode_key::<Quarantine>(&item),
            Some(encode_record::<Quarantine>(&record)),
        ),
    ]));
    replica.decide_as(flotilla_engine::ENGINE_VERSION);
    let kind = QuarantinedKind::Worker;
    let found = view::find_quarantined(&replica.store, kind, &samples::namespace(), "w0");
    assert_eq!(found.expect("memory does not fail").len(), 1);
    let release = ReleaseQuarantined {
        kind: QuarantinedKind::Worker,
        number: 1,
    };
    replica.now_ms += 1_000;
    replica
        .ask(Body::ReleaseQuarantined(release))
        .expect("it is quarantined");
    fire(&mut replica);
    fire(&mut replica);
    assert_eq!(waiting(&replica), HELD as u64);
}
