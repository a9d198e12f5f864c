//! The catalogue: one row of every table, and what must hold for its key and record.

mod data;
mod trigger;

use crate::samples;
use flotilla_engine::definition::{
    BuiltInTerminal, StepIndex, Target, TerminalIndex, TerminalStatus,
};
use flotilla_engine::ids::{ActionRunNumber, RunNumber, WorkerNumber};
use flotilla_engine::json::Json;
use flotilla_engine::tables::{
    ActionRecord, ActionRunKeys, ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns,
    ActionRunsByAction, Actions, Activation, ActivationState, AttributeValue, Cluster,
    ClusterRecord, DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, End, Event,
    EventKind, History, HistoryCursor, HistoryRecord, IdempotencyKeys, InputChecks, Lease,
    ModuleRecord, Modules, ParentLink, PayloadOwner, PayloadRef, Payloads, ProcessRecord,
    Quarantine, QuarantineRecord, QuarantinedKind, Ready, ReadyRecord, RequestRecord, Requests,
    RevisionsByContent, RunNames, RunRecord, RunStatus, Runs, SignalIds, SignalRecord,
    SignalsWaiting, StepResult, Table, TaskError, TimerKey, TimerKind, Timers, TriggeredBy,
    VersionRecord, Versions, WorkerActivities, WorkerActivityRecord, WorkerKind, WorkerNumbers,
    WorkerRecord, WorkerState, Workers, WorkflowRecord, Workflows, decode_key, decode_record,
    decode_row, encode_key, encode_record,
};
use flotilla_engine::{NodeId, Reply};
use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};

/// A row in bytes.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) key: Vec<u8>,
    pub(crate) record: Vec<u8>,
}

#[test]
fn table_numbers_are_unique_and_leave_room_for_the_replica() {
    let rows = rows();
    let numbers: BTreeSet<u8> = rows.iter().map(|row| row.key[0]).collect();
    assert_eq!(numbers.len(), rows.len());
    assert_eq!(
        numbers,
        (1..=26).chain(35..=45).chain(58..=60).collect(),
        "a table that is added needs a row here"
    );
}

#[test]
fn keys_of_numbers_sort_by_number_and_texts_by_their_parts() {
    sorted::<Runs>(&[0, 1, 255, 256, u64::MAX].map(RunNumber));
    sorted::<History>(&[(1, 9), (1, 256), (2, 0), (256, 1)].map(|(run, at)| (RunNumber(run), at)));
    sorted::<Requests>(&[(0, u128::MAX), (1, 0), (1, 1 << 64)]);
    let timer = |kind, due_ms, subject| TimerKey {
        kind,
        due_ms,
        subject,
        detail: 0,
    };
    sorted::<Timers>(&[
        timer(TimerKind::StepWake, 5, 9),
        timer(TimerKind::StepWake, 6, 1),
        timer(TimerKind::SignalTimeout, 0, 0),
        timer(TimerKind::WorkerSilence, 0, 0),
        timer(TimerKind::StreamSweep, 0, 0),
        timer(TimerKind::GroupDue, 0, 0),
    ]);
    let payload = |owner, position| PayloadRef { owner, position };
    sorted::<Payloads>(&[
        payload(PayloadOwner::Run(RunNumber(1)), 1),
        payload(PayloadOwner::Run(RunNumber(2)), 0),
        payload(PayloadOwner::ActionRun(ActionRunNumber(1)), 0),
    ]);
    sorted::<Quarantine>(&[
        (QuarantinedKind::Run, 2),
        (QuarantinedKind::ActionRun, 1),
        (QuarantinedKind::Worker, 0),
        (QuarantinedKind::Stream, 0),
        (QuarantinedKind::Group, 0),
    ]);
    let ready = |priority: u8, number| {
        (
            samples::namespace(),
            samples::action(),
            u8::MAX - priority,
            ActionRunNumber(number),
        )
    };
    sorted::<Ready>(&[ready(255, 9), ready(10, 1), ready(10, 2), ready(0, 1)]);
}

#[test]
fn a_key_of_another_table_or_with_bytes_left_over_is_no_key() {
    let key = encode_key::<Runs>(&RunNumber(1));
    assert_eq!(decode_key::<Runs>(&key), Some(RunNumber(1)));
    assert_eq!(decode_key::<ActionRuns>(&key), None);
    assert_eq!(decode_key::<Runs>(&key[..8]), None);
    assert_eq!(decode_key::<Runs>(&[key.as_slice(), &[0]].concat()), None);
    assert!(decode_row::<Runs>(&key, &[1, 2, 3]).is_err());
}

fn sorted<T: Table>(keys: &[T::Key]) {
    let encoded: Vec<Vec<u8>> = keys.iter().map(encode_key::<T>).collect();
    assert!(encoded.is_sorted(), "{}", type_name::<T>());
}

/// A row of every table, by number; each survives the way to bytes and back.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = workflow_rows();
    rows.extend(run_rows());
    rows.extend(action_rows());
    rows.extend(worker_rows());
    rows.extend(data::rows());
    rows.extend(trigger::rows());
    rows.sort_by_key(|row| row.key[0]);
    rows
}

fn row<T: Table>(key: T::Key, record: T::Record) -> Row {
    let row = Row {
        name: type_name::<T>()
            .rsplit("::")
            .next()
            .unwrap_or_default()
            .to_owned(),
        key: encode_key::<T>(&key),
        record: encode_record::<T>(&record),
    };
    let decoded = decode_key::<T>(&row.key).expect("just encoded");
    assert_eq!(
        encode_key::<T>(&decoded),
        row.key,
        "the key of {}",
        row.name
    );
    let decoded = decode_record::<T>(&row.record).expect("just encoded");
    assert_eq!(
        encode_record::<T>(&decoded),
        row.record,
        "the record of {}",
        row.name
    );
    row
}

fn workflow_rows() -> Vec<Row> {
    let workflow = || (samples::namespace(), samples::workflow());
    let version = || {
        (
            samples::namespace(),
            samples::workflow(),
            samples::version(),
        )
    };
    let number = DefinitionNumber(4);
    vec![
        row::<Cluster>((), cluster()),
        row::<Workflows>(
            workflow(),
            WorkflowRecord {
                is_enabled: true,
                latest: number,
            },
        ),
        row::<Versions>(
            version(),
            VersionRecord {
                newest: number,
                revisions_count: 2,
            },
        ),
        row::<Definitions>(
            number,
            DefinitionRecord {
                namespace: samples::namespace(),
                revision: 2,
                created_at_ms: 1_000,
                definition: samples::definition(),
            },
        ),
        row::<DefinitionSources>(number, "kind: Workflow".to_owned()),
        row::<RevisionsByContent>(
            (
                samples::namespace(),
                samples::workflow(),
                samples::version(),
                77,
            ),
            number,
        ),
        row::<Requests>(
            (3, 1 << 100),
            RequestRecord {
                fingerprint: 99,
                reply: Reply::Done,
            },
        ),
        row::<Quarantine>(
            (QuarantinedKind::Run, 7),
            QuarantineRecord {
                at_ms: 1_000,
                raft_index: 12,
            },
        ),
    ]
}

fn cluster() -> ClusterRecord {
    ClusterRecord {
        now_ms: 1_700_000_000_000,
        grace_until_ms: 1_700_000_010_000,
        runs_count: 7,
        action_runs_count: 9,
        workers_count: 2,
        definitions_count: 4,
        key_versions_count: 5,
        streams_count: 3,
        groups_count: 2,
        requests_count: 1,
        panics_count: 1,
    }
}

fn run_rows() -> Vec<Row> {
    let run = RunNumber(7);
    let payload = samples::payload();
    vec![
        row::<Runs>(run, run_record()),
        row::<RunNames>((samples::namespace(), samples::run_id()), run),
        row::<IdempotencyKeys>(
            (samples::namespace(), samples::workflow(), samples::key()),
            run,
        ),
        row::<InputChecks>((run, 3), ()),
        row::<Payloads>(payload, samples::json()),
        row::<History>((run, 1), history()),
        row::<SignalsWaiting>((run, samples::signal_type(), 1), SignalRecord { payload }),
        row::<SignalIds>((run, samples::signal_id()), 1),
        row::<Timers>(samples::timer(), ()),
    ]
}

/// A run that has been through everything.
fn run_record() -> RunRecord {
    let states = [
        ActivationState::Executing,
        ActivationState::Action(ActionRunNumber(9)),
        ActivationState::Signal {
            deadline_ms: Some(5_000),
        },
        ActivationState::Child(RunNumber(8)),
        ActivationState::ChildInput {
            definition: DefinitionNumber(4),
        },
        ActivationState::Retry { due_ms: 6_000 },
        ActivationState::Poll { due_ms: 7_000 },
    ];
    let payload = samples::payload();
    let active = (1..).zip(states).map(|(number, state)| Activation {
        number,
        step: StepIndex(1),
        attempt: 2,
        polls_count: 1,
        started_at_ms: 1_000,
        input: payload,
        state,
    });
    let result = StepResult {
        outcome: samples::outcome(),
        output: Some(payload),
        attempts: 1,
        started_at_ms: 1_000,
        completed_at_ms: 2_000,
        order: 1,
    };
    RunRecord {
        namespace: samples::namespace(),
        id: samples::run_id(),
        definition: DefinitionNumber(4),
        status: RunStatus::Ended(TerminalStatus::TimedOut),
        end: Some(End {
            terminal: Target::BuiltIn(BuiltInTerminal::TimedOut),
        }),
        detail: Some("too late".to_owned()),
        triggered_by: TriggeredBy::Parent,
        parent: Some(ParentLink {
            run: RunNumber(6),
            activation: 1,
        }),
        nesting: 1,
        idempotency_key: Some(samples::key()),
        active: active.collect(),
        activations_count: 7,
        results: BTreeMap::from([(StepIndex(0), result)]),
        attributes: BTreeMap::from([
            (0, AttributeValue::String("c".to_owned())),
            (
                1,
                AttributeValue::Number(Json::from_checked("1.50".to_owned())),
            ),
            (2, AttributeValue::Timestamp(-1)),
        ]),
        input: payload,
        output: Some(payload),
        payloads_count: 3,
        signals_count: 1,
        history: HistoryCursor {
            events_count: 20_000,
            trimmed_until: 10_100,
            trimmed_after: 100,
        },
        started_at_ms: 1_000,
        completed_at_ms: Some(9_000),
    }
}

fn history() -> HistoryRecord {
    let event = |step, kind| Event { step, kind };
    HistoryRecord {
        at_ms: 1_000,
        raft_index: 12,
        node: NodeId(1),
        events: events()
            .into_iter()
            .map(|kind| event(Some(StepIndex(1)), kind))
            .collect(),
    }
}

/// One event of each kind, in the order of the enum.
fn events() -> Vec<EventKind> {
    let mut events = step_events();
    events.extend(action_events());
    events.extend(end_events());
    events
}

fn step_events() -> Vec<EventKind> {
    let payload = samples::payload();
    let signal_type = samples::signal_type();
    vec![
        EventKind::WorkflowStarted {
            input: payload,
            parent: Some(samples::run_id()),
        },
        EventKind::StepStarted,
        EventKind::StepCompleted {
            outcome: samples::outcome(),
            output: Some(payload),
        },
        EventKind::StepRetry { attempt: 2 },
        EventKind::RetryScheduled {
            attempt: 2,
            due_ms: 5_000,
        },
        EventKind::PollScheduled {
            poll: 1,
            due_ms: 5_000,
        },
        EventKind::PollExhausted { polls: 10 },
        EventKind::WaitingForSignal {
            signal_type: signal_type.clone(),
            deadline_ms: Some(5_000),
        },
        EventKind::SignalReceived {
            signal_type: signal_type.clone(),
            id: Some(samples::signal_id()),
            payload,
        },
        EventKind::SignalMatched { signal_type },
        EventKind::SignalTimeout {
            target: Target::Custom(TerminalIndex(0)),
        },
    ]
}

fn action_events() -> Vec<EventKind> {
    let action_run = ActionRunNumber(9);
    let action = samples::action;
    vec![
        EventKind::ActionNotFound { action: action() },
        EventKind::ActionDisabled { action: action() },
        EventKind::ChildRefused {
            detail: "why".to_owned(),
        },
        EventKind::AwaitingAction {
            action: action(),
            action_run,
        },
        EventKind::ActionStarted {
            action_run,
            worker: samples::worker(),
            attempt: 1,
        },
        EventKind::ActionRetryScheduled {
            action_run,
            attempt: 2,
            due_ms: 5_000,
            message: "why".to_owned(),
        },
        EventKind::ActionCompleted {
            action_run,
            outcome: samples::outcome(),
        },
        EventKind::ChildStarted {
            child: samples::run_id(),
        },
        EventKind::ChildCompleted {
            child: samples::run_id(),
            outcome: samples::outcome(),
        },
    ]
}

fn end_events() -> Vec<EventKind> {
    let terminal = Target::BuiltIn(BuiltInTerminal::Failed);
    let detail = || "why".to_owned();
    vec![
        EventKind::WorkflowCompleted { terminal },
        EventKind::WorkflowFailed {
            terminal,
            detail: Some(detail()),
        },
        EventKind::WorkflowCancelled {
            terminal,
            reason: Some(detail()),
        },
        EventKind::WorkflowTimedOut { terminal },
        EventKind::RunQuarantined,
        EventKind::TriggerStarted {
            partition: 1,
            records: vec![samples::record_id()],
        },
    ]
}

fn action_rows() -> Vec<Row> {
    let action = || (samples::namespace(), samples::action());
    let number = ActionRunNumber(9);
    let labels = samples::labels();
    vec![
        row::<Actions>(
            action(),
            ActionRecord {
                kind: samples::wasm(),
                timeout_ms: 30_000,
                max_retries: 3,
                retry_delay_ms: 1_000,
                description: Some("charges".to_owned()),
                version: 2,
                is_enabled: true,
                created_at_ms: 1_000,
                updated_at_ms: 2_000,
            },
        ),
        row::<Modules>(
            action(),
            ModuleRecord {
                digest: [7; 32],
                bytes: vec![0, 1, 2],
            },
        ),
        row::<ActionRuns>(number, action_run()),
        row::<ActionRunsByAction>((samples::namespace(), samples::action(), number), ()),
        row::<ActionRunKeys>(
            (samples::namespace(), samples::action(), samples::key()),
            number,
        ),
        row::<Ready>(
            (samples::namespace(), samples::action(), 245, number),
            ReadyRecord { labels },
        ),
    ]
}

fn action_run() -> ActionRunRecord {
    ActionRunRecord {
        namespace: samples::namespace(),
        action: samples::action(),
        owner: ActionRunOwner::Step {
            run: RunNumber(7),
            activation: 2,
        },
        status: ActionRunStatus::Running,
        attempt: 2,
        attempts_max: 4,
        retry_delay_ms: 1_000,
        timeout_ms: 30_000,
        priority: 10,
        labels: samples::labels(),
        idempotency_key: Some(samples::key()),
        input: samples::payload(),
        output: Some(samples::payload()),
        outcome: Some(samples::outcome()),
        error: Some(TaskError {
            code: "declined".to_owned(),
            message: "no funds".to_owned(),
        }),
        lease: Some(Lease {
            worker: samples::worker(),
            secret: 5,
            expires_at_ms: 31_000,
        }),
        created_at_ms: 1_000,
        started_at_ms: Some(1_500),
        completed_at_ms: Some(2_000),
    }
}

fn worker_rows() -> Vec<Row> {
    let worker = || (samples::namespace(), samples::worker());
    let process = ProcessRecord {
        run_count: 5,
        fail_count: 1,
        last_run_at_ms: Some(2_000),
    };
    vec![
        row::<Workers>(
            worker(),
            WorkerRecord {
                number: WorkerNumber(2),
                incarnation: 5,
                kind: WorkerKind::Stream,
                max_concurrency: 10,
                processes: samples::processes(),
                labels: samples::labels(),
                metadata: Some(samples::json()),
                machine_id: Some("host".to_owned()),
                node: Some(NodeId(2)),
                registered_at_ms: 1_000,
            },
        ),
        row::<WorkerActivities>(
            worker(),
            WorkerActivityRecord {
                state: WorkerState::Unhealthy,
                is_draining: true,
                load: 3,
                heard_at_ms: 2_000,
                silence_due_ms: Some(92_000),
                leases: vec![ActionRunNumber(9)],
                tasks_completed: 5,
                tasks_failed: 1,
                processes: BTreeMap::from([("charge".to_owned(), process)]),
            },
        ),
        row::<WorkerNumbers>(WorkerNumber(2), worker()),
    ]
}
