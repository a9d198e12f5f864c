//! Deleting an ended run that has more rows than one sweep may delete or read (W4).

use crate::replica::Replica;
use crate::script::define;
use crate::{invariants, samples};
use flotilla_engine::ids::{ActionRunNumber, OutcomeName, RunId, RunNumber};
use flotilla_engine::limits::{MESSAGE_BYTES_MAX, SWEEP_ROWS_MAX, TURN_READ_BYTES_MAX};
use flotilla_engine::rows::{
    ActionRuns, Event, EventKind, History, HistoryRecord, RunRemains, Runs, TaskError, encode_key,
    encode_record,
};
use flotilla_engine::store::Writes;
use flotilla_engine::{Body, CancelRun, CreateDefinition, NodeId, SweepRuns};

const RUN: RunNumber = RunNumber(1);

/// A replica with an ended run, whose retention has passed.
fn replica() -> Replica {
    let mut replica = Replica::new();
    let action = samples::plain_action();
    let register = Body::RegisterAction(Box::new(action));
    replica.ask(register).expect("it is sound");
    let create = CreateDefinition {
        definition: define(
            "define short 1 retention=1000\n start: wait go -> success=flo.Completed",
        ),
        source: String::new(),
        make_latest: false,
    };
    let create = Body::CreateDefinition(Box::new(create));
    replica.ask(create).expect("it is sound");
    let start = Body::StartRun(samples::plain_start("short", samples::json()));
    replica.ask(start).expect("it is enabled");
    let cancel = CancelRun {
        run_id: RunId::generated(RUN),
        reason: None,
    };
    replica.ask(Body::CancelRun(cancel)).expect("it is open");
    replica.now_ms += 1_001;
    replica
}

/// Adds a record to the history of the run, as if one turn had made these events.
fn add_history(replica: &mut Replica, first_event: u64, kinds: Vec<EventKind>) {
    let event = |kind| Event {
        step: None,
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

#[test]
fn a_turn_that_created_more_action_runs_than_one_sweep_deletes_is_forgotten() {
    let mut replica = replica();
    let count = 3 * SWEEP_ROWS_MAX as u64;
    for _ in 0..count {
        let invoke = Body::InvokeAction(samples::plain_invocation());
        replica.ask(invoke).expect("the action is registered");
    }
    let created = |number| EventKind::AwaitingAction {
        action: samples::action(),
        action_run: ActionRunNumber(number),
    };
    add_history(&mut replica, 100, (1..=count).map(created).collect());
    let mut sweeps_count = 0;
    while replica.has::<Runs>(&RUN) || replica.has::<RunRemains>(&RUN) {
        sweep(&mut replica);
        assert!(replica.writes_count <= 2 * SWEEP_ROWS_MAX);
        sweeps_count += 1;
        assert!(sweeps_count < 20, "the sweeps do not come to an end");
    }
    assert!(sweeps_count > 2, "{sweeps_count}");
    assert!(invariants::rows::<History>(&replica.store, &RUN).is_empty());
    assert!(invariants::rows::<ActionRuns>(&replica.store, &()).is_empty());
}

#[test]
fn a_sweep_reads_a_large_history_in_parts() {
    let mut replica = replica();
    let message = "m".repeat(MESSAGE_BYTES_MAX);
    let failed = EventKind::ActionCompleted {
        action_run: ActionRunNumber(1),
        outcome: OutcomeName::new("failure").expect("an outcome"),
        error: Some(TaskError {
            code: "code".to_owned(),
            message,
        }),
    };
    let record_bytes = 16 * MESSAGE_BYTES_MAX;
    let records_count = 2 * TURN_READ_BYTES_MAX / record_bytes;
    for number in 0..records_count {
        let first_event = 100 + 16 * number as u64;
        add_history(&mut replica, first_event, vec![failed.clone(); 16]);
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
