//! The compensations that a run has left to execute (W82).

use super::world::World;
use super::{signal, start};
use crate::script::define;
use flotilla_engine::definition::StepIndex;
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::limits::COMPENSATIONS_MAX;
use flotilla_engine::rows::{self, Runs, StepResults};
use flotilla_engine::view;

#[test]
fn a_step_with_a_compensation_fails_before_its_call_while_the_list_is_full() {
    let mut world = World::new();
    world.create(define("define kid 1\n start: set -> success=flo.Completed"));
    world.create(define(
        "define work 1\n start: wait go -> success=last\n \
         last: run @workflow/kid undo(@workflow/kid) -> success=refused\n \
         refused: run @workflow/kid undo(@workflow/kid) -> failure=rest\n \
         rest: wait never -> success=flo.Completed",
    ));
    world.accept(start("work", "{}".to_owned()));
    // As if its steps so far had left one place in the list.
    let mut run = world.run(1);
    run.compensations.entered_count = u64::from(COMPENSATIONS_MAX) - 1;
    run.compensations.open_count = COMPENSATIONS_MAX - 1;
    world.plant::<Runs>(&RunNumber(1), &run);

    world.accept(signal(1, "go", "{}"));
    world.run_until_idle();
    let run = world.run(1);
    assert!(run.status.is_open(), "{run:?}");
    assert_eq!(run.compensations.open_count, COMPENSATIONS_MAX);
    let key = (RunNumber(1), ScopeNumber::ROOT, StepIndex(2));
    let result = rows::read::<StepResults>(&world.store, &key);
    let result = result.expect("memory does not fail").expect("it has ended");
    assert_eq!(result.outcome.as_str(), "failure");
    let output = view::payload(&world.store, result.output.expect("its error"));
    let output = output.expect("memory does not fail");
    let (text, error) = (output.as_str(), "\"code\":\"compensations_too_many\"");
    assert!(text.contains(error), "{text}");
    let second_child = rows::read::<Runs>(&world.store, &RunNumber(3));
    assert!(second_child.expect("memory does not fail").is_none());
}
