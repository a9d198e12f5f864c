//! Loops over many items (W57).

use super::world::World;
use super::{large, start};
use crate::invariants;
use crate::script::define;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::{RunId, RunNumber};
use flotilla_engine::limits::{ITEMS_MAX, REMAPPED_ROWS_MAX};
use flotilla_engine::rows::{
    self, Items, IterationResults, RunStatus, Scopes, States, Table, encode_prefix,
};
use flotilla_engine::store::{KeyRange, Order};
use flotilla_engine::{Body, CancelRun, ResumeRevision, ResumeRun, VersionChoice, view};
use std::ops::ControlFlow;

/// Runs the workflow over this many items to its end; returns its output.
fn output_of(world: &mut World, text: &str, (number, items): (u64, usize)) -> String {
    let workflow = text.split(' ').nth(1).expect("a name").to_owned();
    world.create(define(text));
    let numbers: Vec<String> = (0..items).map(|number| number.to_string()).collect();
    let input = format!(
        "{{\"items\":[{}],\"x\":\"{}\"}}",
        numbers.join(","),
        "x".repeat(10_000)
    );
    world.accept(start(&workflow, input));
    world.run_until_idle();
    let run = world.run(number);
    assert!(
        matches!(run.status, RunStatus::Ended(_)),
        "{:?}",
        run.status
    );
    let left = [count::<Items>(world), count::<Scopes>(world)];
    assert_eq!(left, [0; 2], "rows of the loop are left");
    // A resume needs the results of one that failed.
    let is_kept = run.status != RunStatus::Ended(TerminalStatus::Completed);
    assert!(is_kept || count::<IterationResults>(world) == 0);
    let output = view::payload(&world.store, run.output.expect("an output"));
    output.expect("memory does not fail").as_str().to_owned()
}

fn count<T: Table>(world: &World) -> usize {
    let mut count = 0;
    let all = KeyRange::prefix(&[encode_prefix::<T>(&())].concat());
    let visited = rows::visit::<T>(&world.store, &all, Order::Ascending, |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    visited.expect("memory does not fail");
    count
}

#[test]
fn a_loop_over_all_items_that_there_may_be_writes_the_state_once() {
    let mut world = World::new();
    let text = "define sums 1 list state={\"n\":0} output=\"$.state.n\"\n \
                each: foreach items=$.input.items concurrency=100 merge=n=sum\n \
                branch each-item of each single\n each-item: set set=n=$.item.each";
    let sum = ITEMS_MAX * (ITEMS_MAX - 1) / 2;
    assert_eq!(output_of(&mut world, text, (1, ITEMS_MAX)), sum.to_string());
    assert_eq!(count::<States>(&world), 1);
}

#[test]
fn a_loop_of_one_item_after_the_other_is_bounded_too() {
    let mut world = World::new();
    let text = "define loops 1 list state={\"n\":0} output=\"$.state.n\"\n \
                each: foreach items=$.input.items concurrency=1 merge=n=sum collect=none\n \
                branch each-item of each list\n note: set set=n=$.item.each\n wait: timer ms=0";
    let sum = ITEMS_MAX * (ITEMS_MAX - 1) / 2;
    assert_eq!(output_of(&mut world, text, (1, ITEMS_MAX)), sum.to_string());
}

#[test]
fn a_loop_whose_items_all_fail_names_the_first_ones() {
    let mut world = World::new();
    let text = "define fails 1\n \
                start: foreach items=$.input.items concurrency=100 -> success=flo.Completed failure=flo.Failed\n \
                branch start-item of start single\n start-item: run @missing";
    let output = output_of(&mut world, text, (1, ITEMS_MAX));
    assert!(output.contains("\"message\":\"10000 of 10000 items failed, the first one at index 0"));
    assert_eq!(
        output.matches("\"outcome\":\"target_not_found\"").count(),
        100
    );
    assert!(
        output.contains("\"index\":99,"),
        "the first ones are listed"
    );
}

#[test]
fn a_resume_assigns_a_bounded_number_of_rows_to_other_steps() {
    // Each failed item has a scope and a result; the loop has a result, too.
    let items_max = (REMAPPED_ROWS_MAX - 1) / 2;
    for (items, is_accepted) in [(items_max, true), (items_max + 1, false)] {
        let mut world = World::new();
        let steps = "start: foreach items=$.input.items concurrency=100 -> success=flo.Completed failure=flo.Failed\n \
                     branch start-item of start list\n";
        let text = format!("define fails 1\n {steps} item: run @missing");
        output_of(&mut world, &text, (1, items));
        let text = format!("define fails 2\n {steps} before: set set=n=1\n item: run @missing");
        world.create(define(&text));
        let resume = Body::ResumeRun(ResumeRun {
            run_id: RunId::generated(RunNumber(1)),
            from: None,
            revision: Some(ResumeRevision {
                version: VersionChoice::Latest,
                is_forced: true,
            }),
            metadata: None,
        });
        let result = world.apply(vec![resume], 0).remove(0);
        let code = result.err().map(|rejection| rejection.code().as_str());
        assert_eq!(code, (!is_accepted).then_some("resume_too_large"));
        world.run_until_idle();
        invariants::check(&world.store);
        let is_revised = world.run(1).resumption.former_definitions.len() == 1;
        assert_eq!(is_revised, is_accepted);
    }
}

#[test]
fn outputs_that_are_too_large_stop_no_item() {
    let mut world = World::new();
    let text = "define large 1\n \
                start: foreach items=$.input.items -> success=flo.Completed failure=flo.Failed\n \
                branch start-item of start list output={\"x\":\"$.input.x\"}\n one: set set=n=1";
    let output = output_of(&mut world, text, (1, 200));
    assert!(
        output.starts_with("{\"error\":{\"code\":\"result_too_large\""),
        "{output:.200}"
    );
    assert!(output.ends_with("\"total\":200,\"succeeded\":200,\"failed\":0}"));
    let many = format!("{{\"items\":[{}0]}}", "0,".repeat(ITEMS_MAX));
    world.accept(start("large", many));
    let run = world.run(2);
    let output = view::payload(&world.store, run.output.expect("an output"));
    let output = output.expect("memory does not fail");
    assert!(output.as_str().contains("\"code\":\"too_many_items\""));
    world.accept(start("large", large(1_000)));
    assert!(!world.run(3).status.is_open(), "its items are null");
}

#[test]
fn an_array_has_space_around_it() {
    let mut world = World::new();
    world.create(define(
        "define spaced 1 list\n each: foreach items=$.input collect=none\n \
         branch each-item of each single\n each-item: set set=n=$.item.each",
    ));
    world.accept(start("spaced", " \n[1, 2 ]\n".to_owned()));
    let output = view::payload(&world.store, world.run(1).output.expect("an output"));
    let output = output.expect("memory does not fail");
    assert_eq!(
        output.as_str(),
        "{\"total\":2,\"succeeded\":2,\"failed\":0}"
    );
}

/// Loops within each other that take a hundred million steps.
const ENDLESS: &str = "define endless 1 list\n outer: foreach items=$.input.items\n \
                       branch outer-item of outer single\n outer-item: foreach items=$.input.items\n \
                       branch outer-item-item of outer-item single\n outer-item-item: set set=n=1";

fn start_endless(world: &mut World) {
    world.create(define(ENDLESS));
    let items = format!("{{\"items\":[{}0]}}", "0,".repeat(ITEMS_MAX - 1));
    world.accept(start("endless", items));
    assert!(world.run(1).continuation.is_some(), "it is continued");
}

#[test]
fn a_run_that_is_continued_is_cancelled_in_one_entry() {
    let mut world = World::new();
    start_endless(&mut world);
    world.accept(Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced: false,
    }));
    let status = world.run(1).status;
    assert_eq!(status, RunStatus::Ended(TerminalStatus::Cancelled));
    world.run_until_idle();
    assert_eq!(count::<States>(&world), 0, "its writes are dropped");
}

#[test]
fn loops_without_a_wait_end() {
    let mut world = World::new();
    start_endless(&mut world);
    world.run_until_idle();
    let run = world.run(1);
    assert_eq!(run.status, RunStatus::Ended(TerminalStatus::Failed));
    assert_eq!(
        run.detail.as_deref(),
        Some("max step limit reached: 1000000 steps of all scopes without a wait")
    );
}
