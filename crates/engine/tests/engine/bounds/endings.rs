//! The end of a run that is decided while work of it is deferred.

use super::world::World;
use super::{large, signal, start};
use crate::invariants::{self, rows};
use crate::samples;
use crate::script::define;
use flotilla_engine::definition::{Target, TerminalIndex};
use flotilla_engine::ids::{RunId, RunNumber, StreamName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::PAYLOAD_BYTES_MAX;
use flotilla_engine::rows::{PendingWorks, Phase, Work};
use flotilla_engine::view;
use flotilla_engine::{
    Body, CancelRun, CreateStream, Reply, ResumeRevision, ResumeRun, StreamSettings, TaskToken,
    VersionChoice,
};

/// A run with deferred work that is cancelled before that is done.
fn cancelled(last: &str) -> World {
    let mut world = World::new();
    world.accept(stream());
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
    world.accept(cancel());
    world.run_until_idle();
    world
}

pub(super) fn stream() -> Body {
    Body::CreateStream(CreateStream {
        stream: StreamName::new("orders").expect("a stream name"),
        settings: StreamSettings::default(),
    })
}

fn cancel() -> Body {
    Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced: false,
    })
}

#[test]
fn a_success_that_was_deferred_is_undone_although_its_run_was_cancelled_meanwhile() {
    for cancellation in ["", "abandon"] {
        let world = cancelled_after_a_success(cancellation);
        let run = world.run(1);
        let phase = run.fixed_end.as_ref().map(|end| end.phase);
        assert_eq!(phase, Some(Phase::Compensating), "{run:?}");
        assert_eq!((run.active_count, run.compensations.open_count), (1, 0));
    }
}

#[test]
fn a_plan_that_has_succeeded_is_undone_although_the_rest_was_deferred() {
    let action = samples::action();
    let mut world = with_worker(&format!(
        "define work 1\n plan pay cache(1000 k:{{mapped.n}})\n executor pay main @{action}\n \
         start: run @plan/pay input={{\"n\":1}} undo(@{action} input=1) -> success=flo.Completed failure=flo.Failed"
    ));
    world.apply(vec![start("work", large(10))], 1);
    let token = world.tokens.pop();
    world.accept(complete(token, large(PAYLOAD_BYTES_MAX - 10)));
    assert!(is_result_deferred(&world));
    world.accept(cancel());
    world.run_until_idle();
    let run = world.run(1);
    let phase = run.fixed_end.as_ref().map(|end| end.phase);
    assert_eq!(phase, Some(Phase::Compensating), "{run:?}");
}

#[test]
fn a_loop_whose_end_was_deferred_does_not_end_the_cancellation_of_others() {
    let action = samples::action();
    let mut world = with_worker(&format!(
        "define work 1\n start: parallel -> success=flo.Completed failure=flo.Failed\n \
         branch left of start single\n  left: foreach items=[1]\n \
         branch left-item of left single\n  item: wait go\n \
         branch right of start single\n  right: run @{action} input=1"
    ));
    world.apply(vec![start("work", large(10))], 1);
    world.accept(signal(1, "go", &large(PAYLOAD_BYTES_MAX - 10)));
    assert!(is_result_deferred(&world));
    world.accept(cancel());
    world.run_until_idle();
    let run = world.run(1);
    let end = run
        .fixed_end
        .as_ref()
        .map(|end| (end.phase, end.cancelling_count));
    assert_eq!(end, Some((Phase::Cancelling, 1)), "{run:?}");
    let token = world.tokens.pop();
    world.accept(complete(token, "null".to_owned()));
    world.run_until_idle();
    let run = world.run(1);
    assert_eq!((run.status.name(), run.active_count), ("cancelled", 0));
}

/// A world with a workflow, an action and a worker.
pub(super) fn with_worker(definition: &str) -> World {
    let mut world = World::new();
    world.accept(Body::RegisterAction(Box::new(samples::plain_action())));
    world.create(define(definition));
    world.accept(Body::RegisterWorker(Box::new(samples::plain_worker(
        WorkerId::new("w").expect("an id"),
    ))));
    world
}

pub(super) fn complete(token: Option<TaskToken>, output: String) -> Body {
    samples::plain_completion(
        token.expect("the task was delivered"),
        Json::from_checked(output),
    )
}

/// Whether the result of a step is left to a later entry.
fn is_result_deferred(world: &World) -> bool {
    let works = rows::<PendingWorks>(&world.store, &RunNumber(1));
    let mut works = works.iter();
    works.any(|(_, work)| matches!(work, Work::FinishStep { .. }))
}

/// A run that is cancelled while the success of its step is deferred.
fn cancelled_after_a_success(cancellation: &str) -> World {
    let action = samples::action();
    let mut world = with_worker(&format!(
        "define work 1\n start: parallel -> success=flo.Completed failure=flo.Failed\n \
         branch left of start list\n  l1: wait go\n  l2: emit orders payload=$.input\n  \
         l3: emit orders payload=$.input\n  l4: emit orders payload=$.input\n  l5: wait never\n \
         branch right of start single\n  right: run @{action} input=1 {cancellation} undo(@{action})"
    ));
    world.accept(stream());
    world.apply(vec![start("work", large(900_000))], 1);
    let token = world.tokens.pop();
    world.accept(signal(1, "go", "{}"));
    assert!(
        world.run(1).continuation.is_some(),
        "the turn had no room left"
    );
    world.accept(complete(token, "null".to_owned()));
    world.accept(cancel());
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

#[test]
fn a_run_that_is_resumed_and_waits_for_its_key_has_no_continuation() {
    let mut world = World::new();
    world.accept(stream());
    world.create(define(
        "define work 1\n concurrency \"one\"\n start: wait go -> success=a\n a: emit orders payload=$.input -> success=b\n \
         b: emit orders payload=$.input -> success=c\n c: emit orders payload=$.input -> success=flo.Completed",
    ));
    world.accept(start("work", large(900_000)));
    world.accept(start("work", large(10)));
    let resume = Body::ResumeRun(ResumeRun {
        run_id: RunId::generated(RunNumber(1)),
        from: None,
        revision: None,
        metadata: None,
    });
    world.accept(signal(1, "go", "{}"));
    assert!(
        world.run(1).continuation.is_some(),
        "the turn had no room left"
    );
    world.accept(Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced: true,
    }));
    let Reply::RunResumed(resumed) = world.accept(resume) else {
        panic!("the run is resumed");
    };
    assert!(resumed.is_queued);
    invariants::check(&world.store);
    assert_eq!(world.run(1).continuation, None);
    world.accept(signal(2, "go", "{}"));
    world.run_until_idle();
    invariants::check(&world.store);
    assert_eq!(world.run(1).status.name(), "completed");
}

/// The end of the run was deferred when the run was cancelled: a resume ends it.
fn resumed_at_its_end(terminals_of_the_revision: &str) -> World {
    let define_with = |version: u8, terminals: &str| {
        define(&format!(
            "define work {version}\n{terminals} start: wait go -> success=a\n \
             a: emit orders payload=$.input.large -> success=b\n b: emit orders payload=$.input.large -> success=c\n \
             c: set set=kept=$.input.small -> success={}",
            terminals
                .split_whitespace()
                .nth(1)
                .unwrap_or("flo.Completed")
        ))
    };
    let mut world = World::new();
    world.accept(stream());
    world.create(define_with(1, " terminal Sold completed\n"));
    let text = |bytes: usize| "x".repeat(bytes);
    let input = format!(
        r#"{{"large":"{}","small":"{}"}}"#,
        text(830_000),
        text(218_400)
    );
    world.accept(start("work", input));
    world.accept(signal(1, "go", "{}"));
    let deferred: Vec<Work> = rows::<PendingWorks>(&world.store, &RunNumber(1))
        .into_iter()
        .map(|(_, work)| work)
        .collect();
    assert!(matches!(deferred[..], [Work::Finish(_)]), "{deferred:?}");
    world.accept(Body::CancelRun(CancelRun {
        run_id: RunId::generated(RunNumber(1)),
        reason: None,
        is_forced: true,
    }));
    world.create(define_with(2, terminals_of_the_revision));
    world.accept(Body::ResumeRun(ResumeRun {
        run_id: RunId::generated(RunNumber(1)),
        from: None,
        revision: Some(ResumeRevision {
            version: VersionChoice::Latest,
            is_forced: false,
        }),
        metadata: None,
    }));
    world.run_until_idle();
    invariants::check(&world.store);
    world
}

#[test]
fn a_run_ends_at_the_terminal_that_it_had_reached_wherever_the_revision_has_it() {
    let world = resumed_at_its_end(" terminal Early failed\n terminal Sold completed\n");
    let run = world.run(1);
    assert_eq!(run.status.name(), "completed", "{run:?}");
    let end = run.end.expect("the run has ended");
    assert_eq!(end.terminal, Target::Custom(TerminalIndex(1)));
}

#[test]
fn a_run_fails_if_the_revision_lacks_the_terminal_that_it_had_reached() {
    let world = resumed_at_its_end("");
    let run = world.run(1);
    assert_eq!(run.status.name(), "failed", "{run:?}");
    let detail = run.detail.unwrap_or_default();
    assert!(detail.contains("the terminal \"Sold\""), "{detail}");
    let error = run.end.and_then(|end| end.error).expect("its error");
    let error = view::payload(&world.store, *error).expect("memory does not fail");
    let expected = "{\"code\":\"terminal_not_found\"";
    assert!(error.as_str().starts_with(expected), "{error:?}");
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
