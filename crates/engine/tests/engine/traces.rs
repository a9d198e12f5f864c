//! What a run adds to its trace, where a script would be too long or cannot reach.

use crate::replica::Replica;
use crate::samples;
use crate::script::define;
use flotilla_engine::definition::{BuiltInTerminal, StepIndex, Target};
use flotilla_engine::ids::{Namespace, OutcomeName, RunId, RunNumber, ScopeNumber, SignalType};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{VISIT_EVENTS_LOOKED_AT_MAX, VISIT_EVENTS_MAX};
use flotilla_engine::rows::{
    Event, EventKind, History, HistoryCursor, HistoryRecord, RunRecord, Runs, ScopeId, StepResult,
    StepResults, Table, encode_key, encode_record, read,
};
use flotilla_engine::store::Writes;
use flotilla_engine::view::{self, StepVisit};
use flotilla_engine::{
    Body, CancelRun, Command, NodeId, Reply, RequestId, SignalRun, StartRun, TraceContext, reply,
};
use std::ops::RangeInclusive;

/// A replica with a workflow.
fn replica(definition: &str) -> Replica {
    let mut replica = Replica::new();
    let create = samples::plain_revision(define(definition));
    let created = replica.ask(Body::CreateDefinition(Box::new(create)));
    created.expect("the definition is right");
    replica
}

fn start_run() -> StartRun {
    samples::plain_start("order", Json::null())
}

/// Starts the run `wfrun-1`, in a trace.
fn start(replica: &mut Replica) {
    let start = StartRun {
        trace: Some(samples::trace()),
        start_time: None,
        metadata: None,
        target: None,
        locks: None,
        ..start_run()
    };
    replica.ask(Body::StartRun(start)).expect("accepted");
}

fn run_id() -> RunId {
    RunId::generated(RunNumber(1))
}

fn signal(replica: &mut Replica, signal_type: &str) {
    let signal = SignalRun {
        run_id: run_id(),
        signal_type: SignalType::new(signal_type).expect("a type"),
        payload: Json::null(),
        scope: None,
        signal_id: None,
    };
    replica.ask(Body::SignalRun(signal)).expect("accepted");
}

fn cancel(replica: &mut Replica) {
    let (run_id, reason) = (run_id(), Some("by hand".to_owned()));
    let cancel = CancelRun {
        run_id,
        reason,
        is_forced: true,
    };
    replica.ask(Body::CancelRun(cancel)).expect("accepted");
}

/// The visits that ended in these entries.
fn left(replica: &Replica, entries: RangeInclusive<u64>) -> Vec<StepVisit> {
    let namespace = Namespace::default_namespace();
    let found = view::steps_left(&replica.store, &namespace, &run_id(), entries);
    found.expect("memory does not fail")
}

/// The visits that ended in the last entry.
fn left_last(replica: &Replica) -> Vec<StepVisit> {
    left(replica, replica.raft_index..=replica.raft_index)
}

fn put<T: Table>(replica: &mut Replica, key: &T::Key, record: &T::Record) {
    let row = (encode_key::<T>(key), Some(encode_record::<T>(record)));
    replica.store.write(&Writes::from([row]));
}

fn run(replica: &Replica) -> RunRecord {
    let run = read::<Runs>(&replica.store, &RunNumber(1));
    run.expect("memory does not fail").expect("the run is kept")
}

#[test]
fn a_step_that_is_left_in_the_entry_in_which_it_is_entered_is_a_visit() {
    let mut replica =
        replica("define order 1\n start: run @missing -> target_not_found=ask\n ask: wait go");
    start(&mut replica);
    let [visit] = &left_last(&replica)[..] else {
        panic!("expected that one step was left");
    };
    assert_eq!(
        (visit.key.run, visit.key.step),
        (RunNumber(1), StepIndex::START)
    );
    assert_eq!((visit.key.entered_at_ms, visit.left_at_ms), (1_000, 1_000));
    let outcome = OutcomeName::new("target_not_found").expect("an outcome");
    assert_eq!(visit.outcome, Some(outcome));
    assert!(visit.is_failure && !visit.is_beginning_missing);
    assert_eq!((visit.attempts, visit.node), (1, NodeId(1)));
    assert_eq!(
        (visit.raft_index, visit.trace),
        (replica.raft_index, Some(samples::trace()))
    );
    assert_eq!(visit.step, samples::name("start"));
    assert_eq!(visit.workflow.as_str(), "order");
    let events: Vec<&str> = visit.events.iter().map(|event| event.type_name).collect();
    assert_eq!(events, ["action_not_found"]);
}

#[test]
fn each_of_many_visits_in_one_entry_is_found() {
    let mut replica =
        replica("define order 1 warn-after=1000\n start: run @missing -> target_not_found=start");
    start(&mut replica);
    let visits = left_last(&replica);
    // The last step that the turn has no room for is not entered.
    assert_eq!(visits.len(), 256);
    assert!(visits.iter().all(|visit| visit.events.len() == 1));
    let run = run(&replica);
    assert_eq!(
        run.detail.as_deref(),
        Some("max step limit reached: 256 steps without a wait")
    );
    assert_eq!(left(&replica, 1..=1), []);
}

#[test]
fn the_end_of_a_run_ends_the_step_that_is_in_progress() {
    let mut replica = replica("define order 1\n start: wait go");
    start(&mut replica);
    replica.now_ms += 5;
    signal(&mut replica, "other");
    assert_eq!(left_last(&replica), []);
    cancel(&mut replica);
    let [visit] = &left_last(&replica)[..] else {
        panic!("expected that one step was ended");
    };
    assert_eq!((visit.key.entered_at_ms, visit.left_at_ms), (1_000, 1_005));
    assert_eq!((&visit.outcome, visit.is_failure), (&None, false));
    let events = visit.events.iter();
    let events: Vec<_> = events
        .map(|event| (event.type_name, event.detail.as_str()))
        .collect();
    let expected = [
        ("waiting_for_signal", "go"),
        ("signal_received", "other"),
        ("workflow_cancelled", "by hand"),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_long_visit_is_shown_without_its_beginning_once_it_was_left() {
    let mut replica = replica("define order 1\n start: wait go");
    start(&mut replica);
    replica.now_ms += 5;
    for _ in 0..=VISIT_EVENTS_LOOKED_AT_MAX {
        signal(&mut replica, "other");
    }
    let before = replica.store.clone();
    signal(&mut replica, "go");
    let [visit] = &left_last(&replica)[..] else {
        panic!("expected that one step was left");
    };
    assert_eq!((visit.key.entered_at_ms, visit.left_at_ms), (1_000, 1_005));
    assert!(visit.is_beginning_missing);
    assert_eq!((visit.attempts, visit.events.len()), (1, VISIT_EVENTS_MAX));
    assert_eq!(visit.events_dropped_count, 903);
    let last = visit.events.last().map(|event| event.type_name);
    assert_eq!(last, Some("signal_matched"));
    // Of one that the run's end has ended it remembers nothing, and nothing is made up.
    let mut cancelled = Replica::new();
    cancelled.store = before;
    cancelled.raft_index = replica.raft_index - 1;
    cancelled.now_ms = replica.now_ms;
    cancel(&mut cancelled);
    assert_eq!(left_last(&cancelled), []);
}

#[test]
fn what_was_trimmed_is_not_mistaken_for_what_is_left_before_it() {
    let mut replica = replica("define order 1\n start: wait go -> success=start");
    start(&mut replica);
    for _ in 0..6 {
        replica.now_ms += 1;
        signal(&mut replica, "go");
    }
    // Each signal makes one record of five events, from the fourth event on.
    assert_eq!(left(&replica, 1..=u64::MAX).len(), 6);
    trim(&mut replica, 9..=18);
    let visits = left(&replica, 1..=u64::MAX);
    let times: Vec<_> = visits
        .iter()
        .map(|visit| (visit.key.entered_at_ms, visit.left_at_ms))
        .collect();
    assert_eq!(times, [(1_004, 1_005), (1_005, 1_006)]);
    trim(&mut replica, 9..=28);
    let visits = left(&replica, 1..=u64::MAX);
    let [visit] = &visits[..] else {
        panic!("expected the last one, which the run remembers, but found {visits:?}");
    };
    assert_eq!((visit.key.entered_at_ms, visit.left_at_ms), (1_005, 1_006));
    assert!(visit.is_beginning_missing);
}

/// Takes events out of the history, as if many more had followed.
fn trim(replica: &mut Replica, events: RangeInclusive<u64>) {
    let mut run = run(replica);
    run.history.trimming.after = events.start() - 1;
    run.history.trimming.until = *events.end();
    put::<Runs>(replica, &RunNumber(1), &run);
    let keys = events.map(|first| encode_key::<History>(&(RunNumber(1), first)));
    replica
        .store
        .write(&keys.map(|key| (key, None::<&[u8]>)).collect());
}

#[test]
fn parallel_steps_are_distinguished() {
    let mut replica = replica("define order 1\n start: wait go\n next: wait go\n last: wait go");
    start(&mut replica);
    cancel(&mut replica);
    plant_parallel_steps(&mut replica);
    let visits = |entries| -> Vec<_> {
        let visits = left(&replica, entries).into_iter();
        let in_short = |visit: StepVisit| {
            let events = visit.events.iter().map(|event| event.type_name);
            let events: Vec<&str> = events.collect();
            let times = (visit.key.entered_at_ms, visit.left_at_ms);
            (visit.key.step.0, times, visit.attempts, events.join(" "))
        };
        visits.map(in_short).collect()
    };
    let of_second = (1, (1, 3), 2, "step_retry".to_owned());
    let of_first = "poll_exhausted run_released workflow_cancelled".to_owned();
    let of_third = "run_released workflow_cancelled".to_owned();
    let under_way = [(0, (1, 4), 1, of_first), (2, (2, 4), 1, of_third)];
    assert_eq!(visits(103..=103), std::slice::from_ref(&of_second));
    assert_eq!(visits(104..=104), under_way);
    let [of_first, of_third] = under_way;
    assert_eq!(visits(101..=104), [of_second, of_first, of_third]);
    assert_eq!(visits(101..=102), []);
}

/// Gives the run a history as none has yet: of three steps, the first two of which are entered together. The
/// entries are those from 101 on, at 1 ms, 2 ms and so on.
fn plant_parallel_steps(replica: &mut Replica) {
    let [first, second, third] = [0, 1, 2].map(|step| Some(StepIndex(step)));
    let event = |step: Option<StepIndex>, kind| Event {
        scope: ScopeId::default(),
        step,
        visit: u32::from(step.is_some()),
        activation: step.map(|step| u64::from(step.0) + 1),
        kind,
    };
    let (outcome, output) = (samples::outcome(), None);
    let completed = EventKind::StepCompleted { outcome, output };
    let cancelled = EventKind::WorkflowCancelled {
        terminal: Target::BuiltIn(BuiltInTerminal::Cancelled),
        reason: None,
    };
    let histories = [
        vec![
            event(first, EventKind::StepStarted),
            event(second, EventKind::StepStarted),
        ],
        vec![
            event(second, EventKind::StepRetry { attempt: 2 }),
            event(third, EventKind::StepStarted),
            event(first, EventKind::PollExhausted { polls: 3 }),
        ],
        vec![event(second, completed)],
        vec![event(None, EventKind::RunReleased), event(None, cancelled)],
    ];
    let mut run = run(replica);
    run.activations_count = 3;
    run.left_count = 1;
    run.history = HistoryCursor::default();
    let result = StepResult {
        outcome: samples::outcome(),
        output: None,
        visit: 1,
        first_scope: None,
        attempts: 2,
        started_at_ms: 1,
        completed_at_ms: 3,
        order: 1,
    };
    put::<StepResults>(
        replica,
        &(RunNumber(1), ScopeNumber::ROOT, StepIndex(1)),
        &result,
    );
    for (index, events) in (1..).zip(histories) {
        let first = run.history.events_count + 1;
        run.history.events_count += events.len() as u64;
        let record = HistoryRecord {
            at_ms: index,
            raft_index: 100 + index,
            node: NodeId(1),
            term: 1,
            payloads_count: 3,
            events,
        };
        put::<History>(replica, &(RunNumber(1), first), &record);
    }
    put::<Runs>(replica, &RunNumber(1), &run);
}

#[test]
fn a_task_outside_any_workflow_belongs_to_no_visit() {
    let mut replica = Replica::new();
    let register = Body::RegisterAction(Box::new(samples::plain_action()));
    replica.ask(register).expect("accepted");
    let invoked = replica.ask(Body::InvokeAction(samples::plain_invocation()));
    let Ok(Reply::ActionInvoked(reply::ActionInvoked { action_run, .. })) = invoked else {
        panic!("expected an action run, but found {invoked:?}");
    };
    let visit = view::task_visit(&replica.store, action_run);
    assert_eq!(visit.expect("memory does not fail"), None);
}

#[test]
fn the_same_request_in_another_trace_is_a_repeat() {
    let mut replica = replica("define order 1\n start: wait go");
    let other = TraceContext::new([1; 16], [2; 8], false).expect("both ids name something");
    let traced = |trace| {
        Body::StartRun(StartRun {
            trace: Some(trace),
            start_time: None,
            metadata: None,
            target: None,
            locks: None,
            ..start_run()
        })
    };
    let bodies = [
        traced(samples::trace()),
        traced(other),
        Body::StartRun(start_run()),
    ];
    let replies = bodies.map(|body| {
        let command = Command {
            request_id: Some(RequestId(7)),
            ..body.into_command(Namespace::default_namespace())
        };
        replica.apply(Vec::new(), command).expect("accepted")
    });
    assert!(replies.iter().all(|reply| *reply == replies[0]));
    let trace = view::run_trace(&replica.store, RunNumber(1));
    assert_eq!(trace.expect("memory does not fail"), Some(samples::trace()));
    assert!(!replica.has::<Runs>(&RunNumber(2)));
}
