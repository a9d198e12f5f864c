//! One value of everything that is persisted or sent: golden bytes and round trips are made of it.

mod access;
pub(crate) mod bindings;
mod data;
mod kinds;
mod plain;
mod policies;
pub(crate) mod quota;
mod runs;
mod starts;
pub(crate) mod steps;

pub(crate) use access::{api_token, api_token_record, report_proof, secret};
pub(crate) use data::{
    consumer, group, group_settings, kv_key, partition_key, record_id, stream, stream_settings,
};
pub(crate) use plain::{
    plain_action, plain_completion, plain_invocation, plain_revision, plain_start, plain_worker,
};

use kinds::{expression, parallel, switch};
use policies::{backoff, listed_retry, retry, step_retry};
pub(crate) use policies::{cause, timeouts};
pub(crate) use runs::lock;
use starts::{schedule, trigger};

use flotilla_engine::definition::{
    AttributeKind, Backoff, BackoffKind, Block, BlockForm, Breaker, BuiltInTerminal, Cache,
    CacheKeyPart, ConcurrencyLimit, CustomTerminal, Definition, DefinitionExtensions, ErrorClasses,
    Executor, ExecutorExtensions, Fallback, FallbackCondition, GroupMode, Health, Idempotency,
    LockSource, OnLimit, OutputRules, Part, Path, Plan, PlanExtensions, PollPolicy, RateLimit,
    RetryDelays, RetryPolicy, Root, RunFact, RunRetry, Schedule, SearchAttribute, Segment,
    Selection, Step, StepDefaults, StepIndex, StepKind, StepRetry, Target, Template, TerminalIndex,
    TerminalStatus, Timeouts, Timing, Tracking, Trigger,
};
use flotilla_engine::ids::{
    ActionName, ActionRunNumber, Approver, Comment, IdempotencyKey, Identity, Namespace,
    OutcomeName, RunId, RunNumber, ScopePathText, SignalId, SignalType, StepName, WorkerId,
    WorkflowName, WorkflowVersion,
};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    ActionType, DefinitionNumber, FailureCause, PayloadOwner, PayloadRef, Process, ProcessKind,
    StepTimeout, TimerKey, TimerKind, WasmLimits, WorkerType,
};
use flotilla_engine::{
    AcceptTask, AssignTasks, BeginTerm, Body, CancelRun, CompleteTask, CreateDefinition,
    DeadLetterSelector, DecideSchemaCheck, DeleteAction, Departure, DeregisterWorker, DrainWorker,
    DueTime, FailKind, FailTask, FailureOutcome, FireSchedule, FireTimer, HeartbeatWorker,
    InvalidateCache, InvokeAction, NodeId, Offer, PlanRef, PurgeDeadLetters, RegisterAction,
    RegisterWorker, ReleaseWorker, ReportTask, RequeueDeadLetters, ResetPlan, SchemaVerdict,
    SetActionEnabled, SetClusterSettings, SetNextFiring, SetWorkflowEnabled, SignalRun,
    StepSelector, SweepRequests, SweepRuns, TaskReport, TaskToken, TouchTask, TraceContext,
};
use std::collections::BTreeMap;

pub(crate) fn namespace() -> Namespace {
    Namespace::default_namespace()
}

pub(crate) fn workflow() -> WorkflowName {
    WorkflowName::new("order").expect("a name")
}

pub(crate) fn version() -> WorkflowVersion {
    WorkflowVersion::new("1.0.0").expect("a version")
}

pub(crate) fn action() -> ActionName {
    ActionName::new("charge").expect("a name")
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::new("w1").expect("an id")
}

pub(crate) fn run_id() -> RunId {
    RunId::new("wfrun-7").expect("an id")
}

pub(crate) fn key() -> IdempotencyKey {
    IdempotencyKey::new("order-123").expect("a key")
}

pub(crate) fn outcome() -> OutcomeName {
    OutcomeName::new("success").expect("an outcome")
}

pub(crate) fn signal_type() -> SignalType {
    SignalType::new("approval").expect("a type")
}

pub(crate) fn scope_path() -> ScopePathText {
    ScopePathText::new("fan/stock").expect("a path")
}

pub(crate) fn step() -> StepName {
    StepName::new("gate").expect("a name")
}

pub(crate) fn comment() -> Comment {
    Comment::new("well done").expect("a comment")
}

pub(crate) fn identity() -> Identity {
    Identity::new("user:ana").expect("an identity")
}

pub(crate) fn approver() -> Approver {
    Approver::new("role:ops").expect("an approver")
}

pub(crate) fn signal_id() -> SignalId {
    SignalId::new("s-1").expect("an id")
}

pub(crate) fn json() -> Json {
    Json::from_checked("{\"n\":1}".to_owned())
}

pub(crate) fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("gpu".to_owned(), "yes".to_owned())])
}

pub(crate) fn payload() -> PayloadRef {
    PayloadRef {
        owner: PayloadOwner::Run(RunNumber(7)),
        position: 2,
    }
}

/// The example of W3C's Trace Context.
pub(crate) fn trace() -> TraceContext {
    let trace_id = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128;
    let parent_id = 0x00f0_67aa_0ba9_02b7_u64;
    let trace = TraceContext::new(trace_id.to_be_bytes(), parent_id.to_be_bytes(), true);
    trace.expect("both ids name something")
}

pub(crate) fn token() -> TaskToken {
    TaskToken {
        action_run: ActionRunNumber(9),
        attempt: 2,
        secret: 0x0123_4567_89ab_cdef,
    }
}

/// The end of a task that failed and is not tried again: its input becomes a dead letter.
pub(crate) fn failed(token: TaskToken) -> Body {
    Body::FailTask(FailTask {
        token,
        kind: FailKind::NoRetry,
        code: None,
        message: "broken".to_owned(),
        outcome: FailureOutcome::Failure,
        not_before: Some(DueTime::At { ms: 2_000 }),
        state_patch: Some(json()),
        usage: Some(json()),
    })
}

pub(crate) fn timer() -> TimerKey {
    TimerKey {
        kind: TimerKind::LeaseExpiry,
        due_ms: 1_700_000_030_000,
        subject: 9,
        detail: 2,
    }
}

pub(crate) fn offer() -> Offer {
    Offer {
        namespace: namespace(),
        worker: worker(),
        poll: 3,
        actions: vec![action()],
        labels: labels(),
        slots: 2,
    }
}

pub(crate) fn processes() -> Vec<Process> {
    let process = |name: &str, kind| Process {
        name: name.to_owned(),
        kind,
    };
    vec![
        process("charge", ProcessKind::Action),
        process("events/group", ProcessKind::StreamConsumer),
    ]
}

/// One command of each kind, in the order of the enum.
pub(crate) fn bodies() -> Vec<Body> {
    let mut bodies = on_runs();
    bodies.extend(on_actions());
    bodies.extend(on_workers());
    bodies.extend(on_plans());
    bodies.extend(on_schedules());
    bodies.extend(data::bodies());
    bodies.push(runs::decide_locks());
    bodies.extend(data::infos());
    bodies.push(runs::retry());
    bodies.push(Body::SetClusterSettings(SetClusterSettings {
        requests_max: Some(9_000_000),
    }));
    bodies.extend(access::bodies());
    bodies
}

fn on_runs() -> Vec<Body> {
    vec![
        Body::CreateDefinition(Box::new(CreateDefinition {
            definition: definition(),
            source: "kind: Workflow".to_owned(),
            make_latest: true,
        })),
        Body::SetWorkflowEnabled(SetWorkflowEnabled {
            workflow: workflow(),
            is_enabled: false,
        }),
        Body::StartRun(runs::start()),
        Body::SignalRun(SignalRun {
            run_id: run_id(),
            signal_type: signal_type(),
            payload: json(),
            scope: Some(scope_path()),
            signal_id: Some(signal_id()),
        }),
        Body::CancelRun(CancelRun {
            run_id: run_id(),
            reason: Some("by hand".to_owned()),
            is_forced: true,
        }),
        Body::DecideSchemaCheck(DecideSchemaCheck {
            run: RunNumber(7),
            activation: 3,
            attempt: 2,
            definition: DefinitionNumber(4),
            verdict: SchemaVerdict::Invalid {
                detail: "/n".to_owned(),
            },
        }),
    ]
}

fn on_actions() -> Vec<Body> {
    vec![
        Body::RegisterAction(Box::new(RegisterAction {
            name: action(),
            kind: wasm(),
            module: Some(vec![0, 1, 2]),
            timeout_ms: 30_000,
            max_retries: 3,
            retry_delay_ms: 1_000,
            description: Some("charges".to_owned()),
            is_only_if_missing: true,
        })),
        Body::DeleteAction(DeleteAction { name: action() }),
        Body::SetActionEnabled(SetActionEnabled {
            name: action(),
            is_enabled: true,
        }),
        Body::InvokeAction(InvokeAction {
            name: action(),
            input: json(),
            priority: 10,
            delay_ms: 500,
            labels: labels(),
            idempotency_key: Some(key()),
        }),
        Body::CompleteTask(CompleteTask {
            token: token(),
            outcome: outcome(),
            output: json(),
            not_before: Some(DueTime::At { ms: 2_000 }),
            state_patch: Some(json()),
            usage: Some(json()),
        }),
        Body::FailTask(FailTask {
            token: token(),
            kind: FailKind::NonRetryable,
            code: Some("declined".to_owned()),
            message: "no funds".to_owned(),
            outcome: FailureOutcome::Timeout,
            not_before: Some(DueTime::At { ms: 2_000 }),
            state_patch: Some(json()),
            usage: Some(json()),
        }),
        Body::TouchTask(TouchTask {
            token: token(),
            extend_ms: 30_000,
        }),
        Body::AssignTasks(AssignTasks { action: action() }),
    ]
}

fn on_workers() -> Vec<Body> {
    vec![
        Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: worker(),
            incarnation: 5,
            kind: WorkerType::Action,
            max_concurrency: 10,
            processes: processes(),
            labels: labels(),
            metadata: Some(json()),
            machine_id: Some("host".to_owned()),
            node: Some(NodeId(2)),
        })),
        Body::HeartbeatWorker(HeartbeatWorker {
            worker_id: worker(),
            incarnation: 5,
            load: 3,
        }),
        Body::DrainWorker(DrainWorker {
            worker_id: worker(),
            incarnation: Some(5),
        }),
        Body::DeregisterWorker(DeregisterWorker {
            worker_id: worker(),
            incarnation: Some(5),
        }),
        Body::ReleaseWorker(ReleaseWorker {
            worker_id: worker(),
            incarnation: 5,
            departure: Departure::Lost {
                last_heartbeat_at_ms: 900,
            },
        }),
        Body::FireTimer(FireTimer { timer: timer() }),
        Body::BeginTerm(BeginTerm { term: 5 }),
        Body::SweepRequests(SweepRequests {}),
    ]
}

/// The outcome of an accepted task.
pub(crate) fn task_report() -> TaskReport {
    TaskReport {
        outcome: outcome(),
        output: json(),
        not_before: Some(DueTime::After { ms: 500 }),
        state_patch: Some(json()),
        usage: Some(json()),
    }
}

/// A step as a caller names it.
pub(crate) fn step_selector() -> StepSelector {
    StepSelector {
        step: Some(step()),
        scope: Some(scope_path()),
        visit: Some(2),
    }
}

fn on_plans() -> Vec<Body> {
    vec![
        Body::AcceptTask(AcceptTask { token: token() }),
        Body::ReportTask(ReportTask {
            token: token(),
            is_authentic: true,
            report: task_report(),
        }),
        Body::InvalidateCache(InvalidateCache {
            event: name("refunded"),
            workflow: Some(workflow()),
            after: Some(PlanRef {
                workflow: workflow(),
                plan: name("payment"),
            }),
        }),
        Body::ResetPlan(ResetPlan {
            workflow: workflow(),
            plan: name("payment"),
            executor: Some(name("stripe")),
        }),
    ]
}

fn on_schedules() -> Vec<Body> {
    let (expected_ms, next_ms) = (1_700_000_060_000, Some(1_700_000_120_000));
    vec![
        Body::SetNextFiring(SetNextFiring {
            workflow: workflow(),
            definition: DefinitionNumber(4),
            expected_ms,
            next_ms,
        }),
        Body::FireSchedule(FireSchedule {
            workflow: workflow(),
            definition: DefinitionNumber(4),
            expected_ms,
            next_ms,
        }),
        Body::SweepRuns(SweepRuns {}),
        Body::RequeueDeadLetters(RequeueDeadLetters {
            action: action(),
            dead_letters: DeadLetterSelector::UpTo(9),
        }),
        Body::PurgeDeadLetters(PurgeDeadLetters {
            action: action(),
            dead_letters: DeadLetterSelector::One(ActionRunNumber(9)),
        }),
    ]
}

pub(crate) fn wasm() -> ActionType {
    ActionType::Wasm {
        digest: [7; 32],
        limits: WasmLimits {
            max_memory_bytes: 16 << 20,
            max_output_bytes: 1 << 20,
        },
    }
}

/// A definition with every kind of thing in it.
pub(crate) fn definition() -> Definition {
    Definition {
        name: workflow(),
        version: version(),
        description: Some("orders".to_owned()),
        metadata: Some(r#"{"team":"shop"}"#.to_owned()),
        namespace: Some(namespace()),
        idempotency: Idempotency::Required,
        retention_ms: Some(60_000),
        timeout_ms: Some(50_000),
        max_steps: Some(20_000),
        loop_warn_after: 100,
        retry_run: Some(RunRetry {
            max_attempts: 3,
            initial_delay_ms: 100,
            max_delay_ms: Some(1_000),
            on_failure: true,
        }),
        concurrency: vec![ConcurrencyLimit {
            key: template(),
            limit: 2,
            name: Some(name("fleet")),
            on_limit: OnLimit::CancelOldest,
        }],
        target: Some(template()),
        locks: vec![
            LockSource::Literal(lock()),
            LockSource::Computed(template()),
        ],
        input_schema: Some("{}".to_owned()),
        input_defaults: Some(r#"{"n":1}"#.to_owned()),
        state: Some(template()),
        output: Some(OutputRules {
            extract: Some(template()),
            schema: Some("{}".to_owned()),
        }),
        defaults: StepDefaults {
            retry: Some(listed_retry()),
            timeouts: Some(timeouts()),
        },
        on_error: Some(StepIndex(5)),
        on_cancel: None,
        terminals: vec![CustomTerminal {
            name: name("Rejected"),
            status: TerminalStatus::Failed,
            output: Some(template()),
            runs_handler: true,
            compensates: Some(false),
        }],
        search_attributes: vec![SearchAttribute {
            name: name("customer"),
            kind: AttributeKind::Timestamp,
            from: path(Root::Input),
        }],
        schedule: Some(schedule()),
        triggers: vec![trigger()],
        plans: vec![plan()],
        ends: vec![outcome()],
        blocks: vec![block(BlockForm::Graph), block(BlockForm::List)],
        steps: steps::steps(),
        extensions: DefinitionExtensions::default(),
    }
}

fn block(form: BlockForm) -> Block {
    Block {
        form,
        start: StepIndex::START,
        opener: (form == BlockForm::List).then_some(StepIndex(1)),
        output: Some(template()),
    }
}

fn plan() -> Plan {
    Plan {
        name: name("payment"),
        selection: Selection::HealthWeighted,
        executors: vec![Executor {
            name: name("stripe"),
            action: action(),
            priority: -5,
            retry: Some(retry()),
            breaker: Some(Breaker {
                failure_threshold: 5,
                cooldown_ms: 30_000,
                half_open_max_calls: 3,
            }),
            rate_limit: Some(RateLimit {
                max_per_second: Some(100),
                max_per_minute: None,
                max_per_hour: None,
            }),
            tracking: Tracking::Async {
                timeout_ms: Some(300_000),
            },
            extensions: ExecutorExtensions::default(),
        }],
        health: Some(Health {
            window_ms: 300_000,
            decay_millionths: 900_000,
            min_samples: 10,
        }),
        cache: Some(Cache {
            ttl_ms: 1_000,
            key: vec![
                CacheKeyPart::Literal("charge:".to_owned()),
                CacheKeyPart::Input(path(Root::Input).segments),
                CacheKeyPart::Mapped(path(Root::Input).segments),
            ],
            invalidate_on: vec![name("refunded")],
        }),
        fallback: Some(Fallback {
            value: "{}".to_owned(),
            condition: FallbackCondition::AnyError,
        }),
        errors: Some(ErrorClasses {
            retryable: Some(vec![name("timeout")]),
            fatal: vec![name("fraud")],
        }),
        extensions: PlanExtensions::default(),
    }
}

fn template() -> Template {
    let part = |root| Part::Path(path(root));
    Template {
        parts: vec![
            Part::Literal("[".to_owned()),
            part(Root::StepOutput(StepIndex(0))),
            part(Root::StepOutcome(StepIndex(1))),
            part(Root::RunId),
            part(Root::Timestamp),
            part(Root::Run(RunFact::RunAttempt)),
            part(Root::State),
            part(Root::Meta),
            part(Root::Result),
            part(Root::Error),
            Part::Expression(expression()),
        ],
    }
}

fn path(root: Root) -> Path {
    let segments = vec![Segment::Field("items".to_owned()), Segment::Index(2)];
    Path { root, segments }
}

/// A checked name of whatever kind is wanted.
pub(crate) fn name<N: Named>(text: &str) -> N {
    N::named(text)
}

pub(crate) trait Named {
    fn named(text: &str) -> Self;
}

macro_rules! named {
    ($($name:ident),*) => {$(
        impl Named for flotilla_engine::ids::$name {
            fn named(text: &str) -> Self {
                Self::new(text).expect("a valid name")
            }
        }
    )*};
}
named!(
    StepName,
    TerminalName,
    AttributeName,
    PlanName,
    ExecutorName,
    ErrorCode,
    EventName,
    StreamName,
    GroupName,
    StateKey,
    ConcurrencyName
);
