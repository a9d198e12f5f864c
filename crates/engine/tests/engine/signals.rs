//! How many signals a run takes (W19).

use crate::invariants::{self, rows};
use crate::trimming::World;
use flotilla_engine::ids::{RunId, RunNumber, SignalId, SignalType};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{
    PAYLOAD_BYTES_MAX, SIGNAL_IDS_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX,
};
use flotilla_engine::rows::{SignalIdPlaces, SignalIds};
use flotilla_engine::{Body, Rejection, Reply, SignalRun, Undeliverable};

const ROUNDS: &str = "define rounds 1\n start: wait tick -> success=start";
const TWO: &str = "define rounds 1\n start: wait tick -> success=next\n \
                   next: wait other -> success=start";

fn signal(
    world: &mut World,
    kind: &str,
    id: Option<u64>,
    payload: Json,
) -> Result<Reply, Rejection> {
    let body = Body::SignalRun(SignalRun {
        run_id: RunId::generated(RunNumber(1)),
        signal_type: SignalType::new(kind).expect("a type"),
        payload,
        scope: None,
        signal_id: id.map(|id| SignalId::new(id.to_string()).expect("an id")),
    });
    world.try_apply(vec![body]).remove(0)
}

fn is_repeated(reply: Result<Reply, Rejection>) -> bool {
    match reply {
        Ok(Reply::SignalAccepted(accepted)) => accepted.is_repeated,
        other => panic!("expected a signal to be accepted, but {other:?}"),
    }
}

#[test]
fn a_run_takes_signals_without_end_and_remembers_the_newest_ids() {
    const COUNT: u64 = SIGNAL_IDS_MAX + 500;
    let mut world = World::new(ROUNDS, 1);
    for id in 0..COUNT {
        assert!(!is_repeated(signal(
            &mut world,
            "tick",
            Some(id),
            Json::null()
        )));
    }
    assert_eq!(
        rows::<SignalIds>(&world.store, &()).len() as u64,
        SIGNAL_IDS_MAX
    );
    assert_eq!(
        rows::<SignalIdPlaces>(&world.store, &()).len() as u64,
        SIGNAL_IDS_MAX
    );
    for id in [COUNT - 1, COUNT - SIGNAL_IDS_MAX] {
        assert!(is_repeated(signal(
            &mut world,
            "tick",
            Some(id),
            Json::null()
        )));
    }
    let forgotten = COUNT - SIGNAL_IDS_MAX - 1;
    assert!(!is_repeated(signal(
        &mut world,
        "tick",
        Some(forgotten),
        Json::null()
    )));
    invariants::check(&world.store);
}

#[test]
fn signals_that_wait_are_bounded_in_number_until_a_step_takes_one() {
    let mut world = World::new(TWO, 1);
    for _ in 0..SIGNALS_KEPT_MAX {
        assert!(!is_repeated(signal(
            &mut world,
            "other",
            None,
            Json::null()
        )));
    }
    let refused = signal(&mut world, "other", Some(1), Json::null());
    assert!(
        matches!(
            refused,
            Err(Rejection::Undeliverable(
                Undeliverable::SignalLimitExceeded(_)
            ))
        ),
        "{refused:?}"
    );
    // One that a step waits for does not wait itself, and the step after it takes one of those that do.
    assert!(!is_repeated(signal(&mut world, "tick", None, Json::null())));
    assert!(!is_repeated(signal(
        &mut world,
        "other",
        Some(1),
        Json::null()
    )));
    let refused = signal(&mut world, "other", None, Json::null());
    assert!(
        matches!(
            refused,
            Err(Rejection::Undeliverable(
                Undeliverable::SignalLimitExceeded(_)
            ))
        ),
        "{refused:?}"
    );
    invariants::check(&world.store);
}

#[test]
fn signals_that_wait_are_bounded_in_bytes() {
    let mut world = World::new(TWO, 1);
    let large = || Json::from_checked(format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2)));
    for _ in 0..SIGNALS_KEPT_BYTES_MAX / PAYLOAD_BYTES_MAX as u64 {
        assert!(!is_repeated(signal(&mut world, "other", None, large())));
    }
    let refused = signal(&mut world, "other", None, Json::null());
    assert!(
        matches!(
            refused,
            Err(Rejection::Undeliverable(
                Undeliverable::SignalLimitExceeded(_)
            ))
        ),
        "{refused:?}"
    );
    assert!(!is_repeated(signal(&mut world, "tick", None, large())));
    assert!(!is_repeated(signal(
        &mut world,
        "other",
        None,
        Json::null()
    )));
    invariants::check(&world.store);
}
