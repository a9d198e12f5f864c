//! Timeouts of steps whose work was deferred to a later entry (W70).

use super::world::World;
use super::{signal, start};
use crate::invariants::rows;
use crate::script::define;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{RunStatus, TimerKind, Timers};
use flotilla_engine::{Body, FireTimer};

/// The firing of a timer of run 1.
fn fire(world: &World, kind: TimerKind) -> Body {
    let timers = rows::<Timers>(&world.store, &());
    let mut timers = timers.into_iter().map(|(timer, ())| timer);
    let timer = timers.find(|timer| timer.kind == kind && RunNumber(timer.subject) == RunNumber(1));
    Body::FireTimer(FireTimer {
        timer: timer.expect("the timer is set"),
    })
}

#[test]
fn a_total_timeout_that_fires_before_a_deferred_attempt_still_ends_the_step() {
    let mut world = World::new();
    world.create(define(
        "define late 1\n start: parallel -> success=flo.Failed failure=flo.TimedOut\n \
         branch asks of start single\n asks: wait go\n \
         branch tries of start single\n \
         tries: run @missing retry(9 constant 10 on=target_not_found) timeouts(total=10)",
    ));
    world.accept(start("late", "{}".to_owned()));
    world.apply_spent(vec![signal(1, "go", "{}")]);
    assert!(world.run(1).continuation.is_some(), "its entry had no room");
    world.now_ms += 10;
    let firings = [TimerKind::StepTotal, TimerKind::StepWake].map(|kind| fire(&world, kind));
    for reply in world.apply(firings.to_vec(), 0) {
        assert!(reply.is_ok(), "{reply:?}");
    }
    world.run_until_idle();
    let run = world.run(1);
    assert_eq!(run.status, RunStatus::Ended(TerminalStatus::TimedOut));
}
