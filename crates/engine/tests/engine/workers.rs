//! The worker registry at its bound (A20): what a script would need thousands of names for.

use crate::replica::Replica;
use crate::{invariants, samples};
use flotilla_engine::ids::WorkerId;
use flotilla_engine::limits::WORKERS_MAX;
use flotilla_engine::tables::{WorkerCounts, Workers};
use flotilla_engine::{
    Body, DeregisterWorker, HeartbeatWorker, Rejection, ReleaseWorker, Reply, reply,
};

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
        last_heartbeat_at_ms: last_heartbeat_at_ms(number),
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
fn in_a_full_namespace_the_longest_silent_worker_gives_way_and_none_is_surveyed() {
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
