//! Signals to steps that are left in a later entry.

use super::world::World;
use super::{signal, start};
use crate::script::define;
use flotilla_engine::view;

#[test]
fn each_signal_satisfies_one_wait_even_if_the_step_is_left_in_a_later_entry() {
    let mut world = World::new();
    let text = "define twice 1\n start: wait item -> success=second\n \
                second: wait item -> success=flo.Completed";
    world.create(define(text));
    world.accept(start("twice", "{}".to_owned()));
    world.apply_spent(vec![signal(1, "item", "1"), signal(1, "item", "2")]);
    assert!(world.run(1).continuation.is_some(), "its entry had no room");
    world.run_until_idle();
    let run = world.run(1);
    assert!(!run.status.is_open(), "{run:?}");
    let output = view::payload(&world.store, run.output.expect("the last signal's payload"));
    assert_eq!(output.expect("memory does not fail").as_str(), "2");
}
