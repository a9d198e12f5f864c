//! Runs that wait for a concurrency key (W84).

use super::world::World;
use super::{signal, start};
use crate::script::define;
use flotilla_engine::limits::{CONCURRENCY_WAITING_MAX, ENTRY_COMMANDS_MAX};

/// The code and the text with which the next start is rejected.
fn next_rejection(world: &mut World) -> (&'static str, String) {
    let refused = world
        .apply(vec![start("one", "{}".to_owned())], 0)
        .remove(0);
    let rejection = refused.expect_err("the queue is full");
    (rejection.code().as_str(), rejection.to_string())
}

#[test]
fn a_start_is_rejected_while_the_queue_of_its_key_is_full() {
    let mut world = World::new();
    world.create(define(
        "define one 1\n concurrency [\"k\"]\n start: wait go -> success=flo.Completed",
    ));
    // One that holds the key, and as many as may wait.
    let mut missing = 1 + CONCURRENCY_WAITING_MAX as usize;
    while missing > 0 {
        let count = missing.min(ENTRY_COMMANDS_MAX);
        let starts = (0..count).map(|_| start("one", "{}".to_owned()));
        world.apply_until_accepted(starts.collect());
        missing -= count;
    }
    let last = 1 + u64::from(CONCURRENCY_WAITING_MAX);
    assert_eq!(world.run(last).status.name(), "pending");
    let (code, text) = next_rejection(&mut world);
    assert_eq!(code, "run_limit_reached");
    assert!(text.contains("its queue is full"), "{text}");

    // The first run that waits begins, and leaves a place.
    world.accept(signal(1, "go", "{}"));
    world.run_until_idle();
    assert_eq!(world.run(2).status.name(), "waiting");
    world.accept(start("one", "{}".to_owned()));
    assert_eq!(next_rejection(&mut world).0, "run_limit_reached");
}
