//! The end of a run with as many active steps as are allowed.

use super::endings::with_worker;
use super::world::World;
use super::{signal, start};
use crate::invariants::{self, rows};
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::{RunId, RunNumber};
use flotilla_engine::json::Json;
use flotilla_engine::limits::ACTIVE_STEPS_MAX;
use flotilla_engine::rows::{ActionRuns, Activations, PendingWorks, Runs};
use flotilla_engine::{AssignTasks, Body, CancelRun};
use std::fmt::Write as _;

/// How many tasks of the run a worker holds.
const HELD_COUNT: u32 = 100;
/// How many branches have a loop. All loops but the last one have 100 iterations.
const LOOPS_COUNT: usize = 10;

/// A run that has as many active steps as are allowed: tasks, child runs, times and signals.
fn widest() -> World {
    let mut world = with_worker("define kid 1\n start: wait never -> success=flo.Completed");
    let mut text = "define wide 1\n terminal Stopped failed\n \
                    start: parallel -> success=flo.Completed failure=flo.Failed\n"
        .to_owned();
    // The outermost step, and those that loop, are active, too; one branch waits for the signal that stops all.
    let last = ACTIVE_STEPS_MAX - 2 - (LOOPS_COUNT - 1) * 101 - 1;
    let waits = [
        format!("run @{} input=1", samples::action()),
        "run @workflow/kid".to_owned(),
        "timer ms=60000".to_owned(),
        "wait never".to_owned(),
    ];
    for number in 0..LOOPS_COUNT {
        let concurrency = if number + 1 == LOOPS_COUNT { last } else { 100 };
        let wait = &waits[number % waits.len()];
        write!(
            text,
            " branch b{number} of start single\n  l{number}: foreach items=$.input concurrency={concurrency}\n \
             branch l{number}-item of l{number} single\n  s{number}: {wait}\n"
        )
        .expect("a text takes everything");
    }
    text.push_str(" branch stop of start single\n  stop: wait stop -> success=Stopped\n");
    world.create(define(&text));
    let items: Vec<usize> = (0..100).collect();
    world.accept(start("wide", format!("{items:?}")));
    world.run_until_idle();
    assert_eq!(world.run(1).active_count as usize, ACTIVE_STEPS_MAX);
    while world.tokens.len() < HELD_COUNT as usize {
        let assign = Body::AssignTasks(AssignTasks {
            action: samples::action(),
        });
        let slots = HELD_COUNT - u32::try_from(world.tokens.len()).expect("few");
        assert!(world.apply(vec![assign], slots)[0].is_ok());
    }
    world
}

fn cancel(is_forced: bool) -> Body {
    Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced,
    })
}

/// Checks that a run has ended, and nothing below it is open.
fn expect_ended(world: &World, status: &str) {
    invariants::check(&world.store);
    let run = world.run(1);
    assert_eq!((run.status.name(), run.active_count), (status, 0));
    assert_eq!(rows::<Activations>(&world.store, &()), Vec::new());
    assert_eq!(rows::<PendingWorks>(&world.store, &()).len(), 0);
    let runs = rows::<Runs>(&world.store, &()).into_iter();
    let open = runs.filter(|(_, run)| run.status.is_open());
    assert_eq!(open.count(), 0);
}

#[test]
fn a_run_with_the_most_active_steps_ends_when_its_workers_have_answered() {
    for (body, status) in [
        (cancel(false), "cancelled"),
        (signal(1, "stop", "{}"), "failed"),
    ] {
        let mut world = widest();
        world.accept(body);
        world.run_until_idle();
        assert!(world.run(1).status.is_open(), "a worker holds tasks");
        let tasks = rows::<ActionRuns>(&world.store, &()).into_iter();
        let open = tasks.filter(|(_, task)| task.status.is_open());
        assert_eq!(open.count(), HELD_COUNT as usize, "only these are awaited");
        for token in std::mem::take(&mut world.tokens) {
            world.accept(samples::plain_completion(token, Json::null()));
        }
        world.run_until_idle();
        expect_ended(&world, status);
    }
}

#[test]
fn a_run_with_the_most_active_steps_ends_by_force_without_its_workers() {
    let mut world = widest();
    world.accept(cancel(true));
    world.run_until_idle();
    expect_ended(&world, "cancelled");
}
