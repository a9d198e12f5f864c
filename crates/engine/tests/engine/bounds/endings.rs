//! The end of a run that is decided while work of it is deferred.

use super::world::World;
use super::{large, signal, start};
use crate::script::define;
use flotilla_engine::ids::{RunId, RunNumber, StreamName};
use flotilla_engine::rows::Phase;
use flotilla_engine::{Body, CancelRun, CreateStream, StreamSettings};

/// A run with deferred work that is cancelled before that is done.
fn cancelled(last: &str) -> World {
    let mut world = World::new();
    world.accept(Body::CreateStream(CreateStream {
        stream: StreamName::new("orders").expect("a stream name"),
        settings: StreamSettings::default(),
    }));
    world.create(define(&format!(
        "define work 1 on-cancel=tidy\n start: wait go -> success=a\n a: emit orders payload=$.input -> success=b\n \
         b: emit orders payload=$.input -> success=c\n c: emit orders payload=$.input -> success={last}\n \
         d: wait never -> success=flo.Completed\n tidy: block\n \
         branch tidy-block of tidy single\n sweep: wait swept"
    )));
    world.accept(start("work", large(900_000)));
    world.accept(signal(1, "go", "{}"));
    assert!(
        world.run(1).continuation.is_some(),
        "the turn had no room left"
    );
    world.accept(Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced: false,
    }));
    world.run_until_idle();
    world
}

#[test]
fn a_step_that_was_deferred_is_not_entered_after_the_end_was_decided() {
    only_the_handler_runs(cancelled("d"));
}

#[test]
fn an_end_that_was_deferred_does_not_stop_the_handler() {
    only_the_handler_runs(cancelled("flo.Completed"));
}

fn only_the_handler_runs(mut world: World) {
    let run = world.run(1);
    let phase = run.fixed_end.as_ref().map(|end| end.phase);
    assert_eq!(
        (phase, run.active_count),
        (Some(Phase::OnCancel), 2),
        "{run:?}"
    );
    world.accept(signal(1, "swept", "{}"));
    world.run_until_idle();
    let run = world.run(1);
    assert_eq!((run.status.name(), run.active_count), ("cancelled", 0));
    assert_eq!(run.detail, None, "{run:?}");
}
