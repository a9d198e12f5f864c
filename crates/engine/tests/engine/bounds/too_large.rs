//! Steps that end because a value that they make is too large.

use super::endings::{complete, stream, with_worker};
use super::world::World;
use super::{large, start};
use crate::samples;
use flotilla_engine::view;

/// The size of an input of which two fit into no payload. In bytes.
const BYTES: usize = 600_000;

/// A run of a workflow of one step, with a large input.
fn run_of(step: &str) -> World {
    let mut world = with_worker(&format!(
        "define work 1 output=$.steps.start.output\n start: {step} -> success=flo.Completed failure=flo.Cancelled"
    ));
    world.accept(stream());
    world.apply(vec![start("work", large(BYTES))], 1);
    world
}

fn expect_code(mut world: World, code: &str) {
    world.run_until_idle();
    let run = world.run(1);
    assert_eq!(run.status.name(), "cancelled", "{run:?}");
    let output = view::payload(&world.store, run.output.expect("the output of the step"));
    let output = output.expect("memory does not fail");
    let expected = format!("{{\"error\":{{\"code\":\"{code}\"");
    assert!(output.as_str().starts_with(&expected), "{output:?}");
}

#[test]
fn a_record_that_is_too_large_is_not_emitted() {
    let step = r#"emit orders payload={"a":"$.input","b":"$.input"}"#;
    expect_code(run_of(step), "record_too_large");
}

#[test]
fn an_input_that_is_too_large_is_not_given_to_a_worker() {
    let action = samples::action();
    let step = format!(r#"run @{action} input={{"a":"$.input","b":"$.input"}}"#);
    let world = run_of(&step);
    assert!(world.tokens.is_empty());
    expect_code(world, "input_too_large");
}

#[test]
fn a_result_of_which_an_extract_is_too_large_ends_its_step() {
    let action = samples::action();
    let step = format!(r#"run @{action} input=1 extract={{"a":"$.result","b":"$.input"}}"#);
    let mut world = run_of(&step);
    let token = world.tokens.pop();
    world.accept(complete(token, large(BYTES)));
    expect_code(world, "output_too_large");
}
