//! The catalogue: one row of every table, and what must hold for its key and record.

mod access;
mod activation;
mod data;
mod dead_letter;
pub(crate) mod event;
mod exclusion;
mod plan;
mod quota;
mod retention;
mod run;
mod run_index;
mod schedule;
mod signal;
mod trigger;
mod worker;
mod workflow;

use crate::samples;
use flotilla_engine::definition::{BlockIndex, StepIndex};
use flotilla_engine::ids::{
    ActionRunNumber, ConcurrencyKeyNumber, Namespace, RunNumber, ScopeNumber, WorkerNumber,
};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    AcceptedRequests, ActionRecord, ActionRunBlock, ActionRunKeys, ActionRunOwner, ActionRunRecord,
    ActionRunSet, ActionRunStatus, ActionRuns, ActionRunsByAction, ActionRunsByRun, Actions,
    AttributeValue, Awaited, AwaitedReport, BoundIdempotencyKeys, BranchResult, BranchResults,
    Cluster, ClusterRecord, ClusterSettings, ClusterSettingsRecord, ConcurrencyHolders,
    ConcurrencyKey, ConcurrencyKeyNumbers, ConcurrencyKeyRecord, ConcurrencyKeys, ConcurrencyQueue,
    Cursor, Event, History, HistoryRecord, IdempotencyKeys, ItemRecord, Items, IterationResults,
    KeySharing, LabelQueueRecord, LabelQueueSet, LabelQueues, LabelSet, Lease, ModuleRecord,
    Modules, PayloadOwner, PayloadPart, PayloadRef, Payloads, PayloadsHeld, PendingWorks,
    Quarantine, QuarantineRecord, QuarantinedKind, Ready, ReadyActionRecord, ReadyActions,
    RequestAgeRecord, RequestAges, RequestRecord, RequestUsage, RequestUsages, Requests,
    ResumableScopes, RunNames, Runs, SchemaChecks, ScopeId, ScopePath, ScopeProgress, ScopeRecord,
    ScopeStep, Scopes, StateRecord, States, StepResult, StepResults, StoredPayload, Table,
    TargetResult, TaskError, TimerKey, TimerKind, Timers, Work, check_row, decode_key,
    decode_record, decode_row, encode_key, encode_record,
};
use flotilla_engine::{CommandScope, NodeId, Reply, reply};
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
    let named: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.key[0], row.name.clone()))
        .collect();
    assert_eq!(numbers.len(), named.len());
    assert_eq!(
        numbers,
        (1..=118).collect(),
        "a table that is added needs a row here"
    );
}

#[test]
fn the_check_accepts_a_row_of_every_table_and_nothing_else() {
    for row in rows() {
        let name = check_row(&row.key, &row.record).expect("a row of the catalogue");
        assert_eq!(name, row.name);
        assert!(check_row(&row.key[..1], &row.record).is_err() || row.key.len() == 1);
        assert!(check_row(&row.key, &[]).is_err(), "{}", row.name);
    }
    assert!(check_row(&[], &[]).is_err());
    assert!(check_row(&[0], &[]).is_err());
    assert!(check_row(&[0xEF], &[]).is_err());
}

#[test]
fn keys_of_numbers_sort_by_number_and_texts_by_their_parts() {
    sorted::<Runs>(&[0, 1, 255, 256, u64::MAX].map(RunNumber));
    sorted::<History>(&[(1, 9), (1, 256), (2, 0), (256, 1)].map(|(run, at)| (RunNumber(run), at)));
    let request = |namespace, id| {
        let namespace = Namespace::new(namespace).expect("a namespace");
        (CommandScope::Namespace(namespace), id)
    };
    sorted::<Requests>(&[
        (CommandScope::Cluster, u128::MAX),
        request("a", 0),
        request("a", 1 << 64),
        request("a", u128::MAX),
        request("a.b", 0),
    ]);
    sorted::<RequestAges>(&[0, 255, 256]);
    let timer = |kind, due_ms, subject| TimerKey {
        kind,
        due_ms,
        subject,
        detail: 0,
    };
    sorted::<Timers>(&[
        timer(TimerKind::StepWake, 5, 9),
        timer(TimerKind::StepWake, 6, 1),
        timer(TimerKind::StepDeadline, 0, 0),
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
        (QuarantinedKind::Schedule, 0),
        (QuarantinedKind::Stream, 0),
        (QuarantinedKind::Group, 0),
        (QuarantinedKind::Trigger, 0),
        (QuarantinedKind::Plan, 0),
    ]);
    let ready = |labels, priority: u8, number| {
        (
            samples::namespace(),
            samples::action(),
            LabelSet(labels),
            u8::MAX - priority,
            ActionRunNumber(number),
        )
    };
    let none = BTreeMap::new;
    sorted::<Ready>(&[
        ready(none(), 255, 9),
        ready(none(), 10, 1),
        ready(none(), 10, 2),
        ready(none(), 0, 1),
        ready(samples::labels(), 10, 1),
    ]);
}

#[test]
fn a_key_of_another_table_or_with_bytes_left_over_is_not_decoded() {
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
    let mut rows = cluster_rows();
    rows.extend(access::rows());
    rows.extend(workflow::rows());
    rows.extend(run_rows());
    rows.extend(exclusion::rows());
    rows.extend(signal::rows());
    rows.extend(activation::rows());
    rows.push(row::<StepResults>(
        (RunNumber(7), ScopeNumber(300), StepIndex(0)),
        result(),
    ));
    rows.extend(scope_rows());
    rows.extend(action_rows());
    rows.extend(worker::rows());
    rows.extend(plan::rows());
    rows.extend(quota::rows());
    rows.extend(schedule::rows());
    rows.extend(run_index::rows());
    rows.extend(retention::rows());
    rows.extend(dead_letter::rows());
    rows.extend(data::rows());
    rows.extend(trigger::rows());
    rows.push(run::info());
    rows.extend(run::usages());
    rows.sort_by_key(|row| row.key[0]);
    rows
}

pub(crate) fn row<T: Table>(key: T::Key, record: T::Record) -> Row {
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

fn cluster_rows() -> Vec<Row> {
    let accepted = AcceptedRequests {
        bytes: 80,
        ids: vec![1 << 100],
    };
    vec![
        row::<Cluster>((), cluster()),
        row::<Requests>(
            (CommandScope::Cluster, 1 << 100),
            RequestRecord {
                accepted_by: 5,
                at_ms: 1_000,
                fingerprint: 99,
                reply: Reply::Done(reply::Done {}),
            },
        ),
        row::<RequestAges>(
            5,
            RequestAgeRecord {
                at_ms: 1_000,
                by_scope: BTreeMap::from([(Namespace::default_namespace().into(), accepted)]),
            },
        ),
        row::<RequestUsages>(
            Namespace::default_namespace().into(),
            RequestUsage {
                count: 1,
                bytes: 80,
            },
        ),
        row::<ClusterSettings>(
            (),
            ClusterSettingsRecord {
                requests_max: 9_000_000,
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
        term: 5,
        grace_until_ms: 1_700_000_010_000,
        run_count: 7,
        namespaces_count: 3,
        action_runs_count: 9,
        workers_count: 2,
        definitions_count: 4,
        concurrency_keys_count: 3,
        locks_count: 4,
        requests_first: 5,
        plan_count: 3,
        key_versions_count: 5,
        streams_count: 3,
        group_count: 2,
        requests: RequestUsage {
            count: 1,
            bytes: 80,
        },
        expirations_from_ms: 1_000,
        panics_count: 1,
        quotas_count: 3,
        quota_versions_count: 9,
    }
}

fn run_rows() -> Vec<Row> {
    let run = RunNumber(7);
    let payload = samples::payload();
    vec![
        row::<Runs>(run, run::record()),
        row::<PendingWorks>((run, 1), work()),
        row::<PayloadsHeld>((run, 2), 12),
        row::<ActionRunsByRun>((run, ActionRunNumber(9)), 12),
        row::<RunNames>((samples::namespace(), samples::run_id()), run),
        row::<IdempotencyKeys>(
            (samples::namespace(), samples::workflow(), samples::key()),
            run,
        ),
        row::<BoundIdempotencyKeys>(
            (run, samples::key(), samples::workflow()),
            samples::namespace(),
        ),
        row::<ConcurrencyKeyNumbers>(concurrency_key(), ConcurrencyKeyNumber(3)),
        row::<ConcurrencyKeys>(
            ConcurrencyKeyNumber(3),
            ConcurrencyKeyRecord {
                key: concurrency_key(),
                holders_count: 2,
                waiting_count: 1,
                next_position: 6,
                first_holder: 3,
                first_waiting: 5,
            },
        ),
        row::<ConcurrencyHolders>((ConcurrencyKeyNumber(3), 4), run),
        row::<ConcurrencyQueue>((ConcurrencyKeyNumber(3), 5), run),
        row::<SchemaChecks>((run, 3), ()),
        row::<Payloads>(payload, StoredPayload::Text(samples::json())),
        row::<Payloads>(
            PayloadRef {
                position: 1,
                ..payload
            },
            StoredPayload::Parts(vec![
                PayloadPart::Text("{\"x\":".to_owned()),
                PayloadPart::Input { from: 5, to: 2_000 },
                PayloadPart::Text("}".to_owned()),
            ]),
        ),
        row::<History>((run, 1), history()),
        row::<Items>(
            (run, 2, 3),
            ItemRecord {
                value: Json::from_checked("{\"n\":1}"),
            },
        ),
        row::<IterationResults>((run, 2, 3), activation::item_result()),
        row::<Timers>(samples::timer(), ()),
    ]
}

fn concurrency_key() -> ConcurrencyKey {
    ConcurrencyKey {
        namespace: samples::namespace(),
        sharing: KeySharing::Named(samples::name("fleet")),
        value: "\"vm-1\"".to_owned(),
    }
}

fn result() -> StepResult {
    StepResult {
        outcome: samples::outcome(),
        output: Some(samples::payload()),
        attempts: 1,
        started_at_ms: 1_000,
        completed_at_ms: 2_000,
        order: 1,
        visit: 2,
        first_scope: Some(ScopeNumber(9)),
    }
}

fn scope_rows() -> Vec<Row> {
    let scope = ScopeRecord {
        id: scope_id(),
        parent: ScopeNumber::ROOT,
        opener: 2,
        block: BlockIndex(1),
        position: 1,
        progress: progress(),
        cancelling: Some(3),
        cursor: Some(Cursor::Step {
            step: StepIndex(1),
            visits_count: 2,
            is_entered: true,
        }),
    };
    let result = BranchResult {
        outcome: samples::outcome(),
        output: Some(samples::payload()),
        reason: Some("because".to_owned()),
        is_retryable: true,
        cause: samples::cause(),
        is_cancelled: true,
    };
    let state = StateRecord {
        object: Json::from_checked("{\"total\":1,\"last\":null}"),
        removed: vec!["last".to_owned()],
    };
    vec![
        row::<ResumableScopes>((RunNumber(7), ScopeNumber(300)), scope.clone()),
        row::<Scopes>((RunNumber(7), ScopeNumber(300)), scope),
        row::<BranchResults>((RunNumber(7), 2, 1), result),
        row::<States>((RunNumber(7), ScopeNumber(300)), state),
    ]
}

fn scope_id() -> ScopeId {
    ScopeId {
        number: ScopeNumber(300),
        path: scope_path(),
    }
}

fn scope_path() -> ScopePath {
    ScopePath::default().with(ScopeStep {
        step: StepIndex(1),
        visit: 2,
        position: 1,
    })
}

pub(super) fn progress() -> ScopeProgress {
    ScopeProgress {
        last_left: Some(StepIndex(1)),
        steps_since_wait: 3,
        has_waited: true,
        entered_count: 5,
    }
}

fn work() -> Work {
    Work::FinishStep {
        activation: 2,
        target_result: target_result(),
    }
}

fn target_result() -> TargetResult {
    TargetResult {
        from: Awaited::Action(ActionRunNumber(9)),
        outcome: samples::outcome(),
        output: Some(samples::payload()),
        reason: Some("because".to_owned()),
        is_retryable: true,
        cause: samples::cause().into(),
        not_before_ms: Some(9_000),
        state_patch: Some(Box::new(samples::payload())),
    }
}

fn attributes() -> BTreeMap<u16, AttributeValue> {
    let number = Json::from_checked("1.50".to_owned());
    BTreeMap::from([
        (0, AttributeValue::String("c".to_owned())),
        (1, AttributeValue::Number(number)),
        (2, AttributeValue::Timestamp(-1)),
    ])
}

fn history() -> HistoryRecord {
    HistoryRecord {
        at_ms: 1_000,
        raft_index: 12,
        node: NodeId(1),
        term: 5,
        payloads_count: 3,
        events: event::events()
            .into_iter()
            .map(|kind| Event {
                scope: scope_id(),
                visit: 2,
                step: Some(StepIndex(1)),
                activation: Some(3),
                kind,
            })
            .collect(),
    }
}

fn action_rows() -> Vec<Row> {
    let action = || (samples::namespace(), samples::action());
    let number = ActionRunNumber(9);
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
        row::<ActionRunsByAction>(
            (
                samples::namespace(),
                samples::action(),
                ActionRunBlock::of(number),
            ),
            ActionRunSet::of(number),
        ),
        row::<ActionRunKeys>(
            (samples::namespace(), samples::action(), samples::key()),
            number,
        ),
        row::<Ready>(
            (
                samples::namespace(),
                samples::action(),
                LabelSet(samples::labels()),
                245,
                number,
            ),
            (),
        ),
        row::<ReadyActions>(
            action(),
            ReadyActionRecord {
                tasks_count: 3,
                label_queues: places(&[0, 9]),
                label_queues_waiting: places(&[9]),
            },
        ),
        row::<LabelQueues>(
            (samples::namespace(), samples::action(), 9),
            LabelQueueRecord {
                labels: samples::labels(),
                open_count: 3,
                waiting_count: 2,
            },
        ),
    ]
}

fn places(places: &[u8]) -> LabelQueueSet {
    let mut set = LabelQueueSet::default();
    for place in places {
        set.set(*place, true);
    }
    set
}

fn action_run() -> ActionRunRecord {
    ActionRunRecord {
        namespace: samples::namespace(),
        action: samples::action(),
        owner: ActionRunOwner::Step {
            run: RunNumber(7),
            activation: 2,
        },
        last_event: 12,
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
        error: Some(error()),
        lease: Some(Lease {
            worker: samples::worker(),
            holder: WorkerNumber(2),
            proof: samples::report_proof(),
            expires_at_ms: 31_000,
        }),
        is_cancelling: true,
        report: Some(AwaitedReport {
            proof: samples::report_proof(),
            deadline_at_ms: Some(301_000),
        }),
        wait_ends_at_ms: Some(604_801_000),
        has_step_heartbeat: true,
        queue_timeout_ms: Some(604_800_000),
        created_at_ms: 1_000,
        started_at_ms: Some(1_500),
        completed_at_ms: Some(2_000),
    }
}

fn error() -> TaskError {
    TaskError {
        code: "declined".to_owned(),
        message: "no funds".to_owned(),
    }
}
