//! Deleting an ended run that has more rows than one sweep may delete or read (W4).

use crate::replica::Replica;
use crate::script::define;
use crate::{invariants, samples};
use flotilla_engine::ids::{ActionRunNumber, OutcomeName, RunId, RunNumber};
use flotilla_engine::limits::{
    EVENT_BYTES, MESSAGE_BYTES_MAX, SWEEP_ROWS_MAX, TURN_READ_BYTES_MAX,
};
use flotilla_engine::rows::{
    ActionRuns, ActionRunsByRun, Event, EventKind, History, HistoryRecord, RunRemains, Runs,
    ScopeId, TaskError, encode_key, encode_record,
};
use flotilla_engine::store::Writes;
use flotilla_engine::{Body, CancelRun, NodeId, SweepRuns};

const RUN: RunNumber = RunNumber(1);

/// A replica with an ended run, whose retention has passed.
fn replica() -> Replica {
    let mut replica = Replica::new();
    let action = samples::plain_action();
    let register = Body::RegisterAction(Box::new(action));
    replica.ask(register).expect("it is sound");
    let create = samples::plain_revision(define(
        "define short 1 retention=1000\n start: wait go -> success=flo.Completed",
    ));
    let create = Body::CreateDefinition(Box::new(create));
    replica.ask(create).expect("it is sound");
    let start = Body::StartRun(samples::plain_start("short", samples::json()));
    replica.ask(start).expect("it is enabled");
    let cancel = CancelRun {
        run_id: RunId::generated(RUN),
        reason: None,
        is_forced: false,
    };
    replica.ask(Body::CancelRun(cancel)).expect("it is open");
    replica.now_ms += 1_001;
    replica
}

/// Adds a record to the history of the run, as if one turn had made these events.
fn add_history(replica: &mut Replica, first_event: u64, kinds: Vec<EventKind>) {
    let event = |kind| Event {
        scope: ScopeId::default(),
        step: None,
        visit: 0,
        activation: None,
        kind,
    };
    let record = HistoryRecord {
        at_ms: 1_000,
        raft_index: 1,
        node: NodeId(1),
        term: 1,
        payloads_count: 1,
        events: kinds.into_iter().map(event).collect(),
    };
    let key = encode_key::<History>(&(RUN, first_event));
    let row = (key, Some(encode_record::<History>(&record)));
    replica.store.write(&Writes::from([row]));
}

fn sweep(replica: &mut Replica) {
    replica
        .ask(Body::SweepRuns(SweepRuns {}))
        .expect("accepted");
}

/// Creates action runs.
fn invoke(replica: &mut Replica, count: u64) {
    for _ in 0..count {
        let invoke = Body::InvokeAction(samples::plain_invocation());
        replica.ask(invoke).expect("the action is registered");
    }
}

/// The event of the creation of an action run.
fn created(number: u64) -> EventKind {
    EventKind::AwaitingAction {
        action: samples::action(),
        action_run: ActionRunNumber(number),
    }
}

/// Sweeps until nothing of the run is left; returns how many sweeps that took.
fn sweep_all(replica: &mut Replica) -> usize {
    let mut sweeps_count = 0;
    while replica.has::<Runs>(&RUN) || replica.has::<RunRemains>(&RUN) {
        sweep(replica);
        assert!(replica.writes_count <= 2 * SWEEP_ROWS_MAX);
        sweeps_count += 1;
        assert!(sweeps_count < 20, "the sweeps do not come to an end");
    }
    assert!(invariants::rows::<History>(&replica.store, &RUN).is_empty());
    assert!(invariants::rows::<ActionRuns>(&replica.store, &()).is_empty());
    assert!(invariants::rows::<ActionRunsByRun>(&replica.store, &()).is_empty());
    sweeps_count
}

#[test]
fn a_turn_that_created_more_action_runs_than_one_sweep_deletes_is_forgotten() {
    let mut replica = replica();
    let count = 3 * SWEEP_ROWS_MAX as u64;
    invoke(&mut replica, count);
    add_history(&mut replica, 100, (1..=count).map(created).collect());
    let sweeps_count = sweep_all(&mut replica);
    assert!(sweeps_count > 2, "{sweeps_count}");
}

#[test]
fn what_a_sweep_leaves_is_swept_later_wherever_it_ends() {
    const HEAD: u64 = 20;
    const LISTED: u64 = 170;
    // One row each: how much the sweep has left for the action runs.
    for others in (300..SWEEP_ROWS_MAX as u64).step_by(47) {
        let mut replica = replica();
        invoke(&mut replica, LISTED);
        add_history(&mut replica, 100, (1..=HEAD).map(created).collect());
        for number in 0..others {
            add_history(&mut replica, 200 + number, vec![EventKind::StepStarted]);
        }
        let listed = (1..=LISTED).map(|number| {
            let key = encode_key::<ActionRunsByRun>(&(RUN, ActionRunNumber(number)));
            (key, Some(encode_record::<ActionRunsByRun>(&number)))
        });
        replica.store.write(&listed.collect());
        sweep_all(&mut replica);
    }
}

#[test]
fn a_sweep_reads_a_history_of_many_events_in_parts() {
    check_parts(&vec![EventKind::StepStarted; 2_000], 2_000 * EVENT_BYTES);
}

#[test]
fn a_sweep_reads_a_history_of_large_events_in_parts() {
    let message = "m".repeat(MESSAGE_BYTES_MAX);
    let failed = EventKind::ActionCompleted {
        action_run: ActionRunNumber(1),
        outcome: OutcomeName::new("failure").expect("an outcome"),
        error: Some(TaskError {
            code: "code".to_owned(),
            message,
        }),
    };
    check_parts(&vec![failed; 16], 16 * MESSAGE_BYTES_MAX);
}

/// A history of such records, each of about this many bytes, takes three sweeps.
fn check_parts(events: &[EventKind], record_bytes: usize) {
    let mut replica = replica();
    let records_count = 2 * TURN_READ_BYTES_MAX / record_bytes;
    for number in 0..records_count {
        let first_event = 100 + (events.len() * number) as u64;
        add_history(&mut replica, first_event, events.to_vec());
    }
    sweep(&mut replica);
    let most = TURN_READ_BYTES_MAX / record_bytes + 16;
    assert!(replica.rows <= most, "{} of at most {most}", replica.rows);
    assert!(replica.has::<RunRemains>(&RUN));
    sweep(&mut replica);
    sweep(&mut replica);
    assert!(!replica.has::<RunRemains>(&RUN));
    assert!(invariants::rows::<History>(&replica.store, &RUN).is_empty());
}
