//! Parses commands.

use super::line::{Line, long_texts};
use super::pattern::lock;
use super::{
    access, dead_letter, define, group, kv, quota, schedule, stream, trace, trigger, world::World,
};
use flotilla_engine::definition::Lock;
use flotilla_engine::ids::{
    ActionName, ActionRunNumber, Comment, EventName, ExecutorName, IdempotencyKey, Namespace,
    OutcomeName, PlanName, RunId, RunNumber, ScopePathText, SignalId, SignalType, StepName,
    WorkerId, WorkflowName, WorkflowVersion,
};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    ActionRuns, ActionType, DefinitionNumber, Process, ProcessKind, QuarantinedKind, WasmLimits,
    WorkerType,
};
use flotilla_engine::{
    AcceptTask, AddInfo, AddTaskInfo, AssignTasks, BeginTerm, Body, CancelActionRun, CancelRun,
    Command, CommandEnvelope, CompleteStep, CompleteTask, CreateDefinition, DecideApproval,
    DecideLocks, DecideSchemaCheck, DeleteAction, DeleteWorkflow, Departure, DeregisterWorker,
    DrainWorker, DueTime, FailKind, FailTask, FailureOutcome, FireTimer, HeartbeatWorker,
    InvalidateCache, InvokeAction, LocksVerdict, NodeId, RegisterAction, RegisterWorker,
    ReleaseQuarantined, ReleaseWorker, ReportTask, RequestId, ResetPlan, ResumeRevision, ResumeRun,
    RetryFrom, RetryRun, SchemaVerdict, SetActionEnabled, SetWorkflowEnabled, SignalRun, StartRun,
    StepSelector, SweepRequests, SweepRuns, TaskReport, TaskToken, TouchTask, VersionChoice, view,
};
use std::collections::BTreeMap;

/// The commands that a line stands for: one, but for `fire`, which stands for every due timer. `actor=` names who sends
/// them.
pub(super) fn parse(world: &World, text: &str) -> Vec<CommandEnvelope> {
    let mut line = Line::parse(text);
    let request_id = line.number("request").map(RequestId);
    let namespace = line.namespace();
    let actor = line.option("actor").map(|name| access::actor(&name));
    let bodies = match line.word().as_str() {
        "define" => vec![create(text)],
        "fire" => fire(world, &mut line),
        "answer-cancelled" => answer_cancelled(world),
        "fire-trigger" => trigger::fire(world, &mut line).into_iter().collect(),
        "release-quarantined" => release_quarantined(world, &namespace, &mut line),
        verb => {
            let body = on_runs(world, verb, &mut line)
                .or_else(|| on_actions(verb, &mut line))
                .or_else(|| on_tasks(world, verb, &mut line))
                .or_else(|| on_workers(world, verb, &mut line))
                .or_else(|| on_plans(verb, &mut line))
                .or_else(|| schedule::command(world, verb, &mut line))
                .or_else(|| dead_letter::command(world, verb, &mut line))
                .or_else(|| access::command(verb, &namespace, &mut line))
                .or_else(|| kv::command(verb, &mut line))
                .or_else(|| quota::command(verb, &mut line))
                .or_else(|| stream::command(verb, &mut line))
                .or_else(|| group::command(world, verb, &mut line));
            let body = body.unwrap_or_else(|| panic!("expected a command, but found `{text}`"));
            line.end();
            vec![body]
        }
    };
    let envelope = |body: Body| {
        let command = Command {
            request_id,
            ..body.into_command(namespace.clone())
        };
        match &actor {
            Some(actor) => command.by(actor.clone()),
            None => command.by_anyone(),
        }
    };
    bodies.into_iter().map(envelope).collect()
}

fn create(text: &str) -> Body {
    let (text, make_latest) = match text.split_once(" make-latest") {
        Some((before, after)) => (format!("{before}{after}"), true),
        None => (text.to_owned(), false),
    };
    // `request` and `namespace` are the command's, not the definition's.
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    let is_own = |word: &&str| !word.starts_with("request=") && !word.starts_with("namespace=");
    let head: Vec<&str> = head.split(' ').filter(is_own).collect();
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition: define(&format!("{}\n{body}", head.join(" "))),
        source: text,
        make_latest,
    }))
}

/// `fire` fires what is due, `fire again` what was fired last, `fire early` the first timer.
fn fire(world: &World, line: &mut Line) -> Vec<Body> {
    let timers = match line.next().as_deref() {
        None => world.due_timers(),
        Some("again") => world.fired.clone(),
        Some("early") => world.timers().into_iter().take(1).collect(),
        Some(other) => panic!("expected nothing, `again` or `early`, but found {other}"),
    };
    let fire = |timer| Body::FireTimer(FireTimer { timer });
    timers.into_iter().map(fire).collect()
}

/// The workers fail the tasks that they hold and that were cancelled.
fn answer_cancelled(world: &World) -> Vec<Body> {
    let held = world.rows::<ActionRuns>();
    let held = held
        .into_iter()
        .filter(|(_, record)| record.is_cancelling && record.lease.is_some());
    let fail = |(number, _): (ActionRunNumber, _)| {
        Body::FailTask(FailTask {
            token: token(world, &number.to_string()),
            kind: FailKind::NoRetry,
            code: Some("cancelled".to_owned()),
            message: "the task was cancelled".to_owned(),
            outcome: FailureOutcome::Failure,
            not_before: None,
            state_patch: None,
            usage: None,
        })
    };
    held.map(fail).collect()
}

/// `release-quarantined KIND NAME` releases the quarantined item with this name or number.
fn release_quarantined(world: &World, namespace: &Namespace, line: &mut Line) -> Vec<Body> {
    let word = line.word();
    let mut kinds = QuarantinedKind::ALL.into_iter();
    let kind = kinds.find(|kind| kind.name() == word).expect("a kind");
    let name = line.word();
    let found = view::find_quarantined(&world.store, kind, namespace, &name).expect("memory");
    let mut numbers: Vec<u64> = found.into_iter().map(|one| one.subject.1).collect();
    if numbers.is_empty() {
        numbers.push(name.parse().expect("a number, as nothing is called so"));
    }
    let body = |number| Body::ReleaseQuarantined(ReleaseQuarantined { kind, number });
    numbers.into_iter().map(body).collect()
}

fn on_runs(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    let workflow = |line: &mut Line| WorkflowName::new(line.word()).expect("a workflow name");
    Some(match verb {
        "enable-workflow" | "disable-workflow" => Body::SetWorkflowEnabled(SetWorkflowEnabled {
            workflow: workflow(line),
            is_enabled: verb == "enable-workflow",
        }),
        "delete-workflow" => Body::DeleteWorkflow(DeleteWorkflow {
            workflow: workflow(line),
        }),
        "start" => Body::StartRun(StartRun {
            trace: line.option("trace").map(|text| trace::parse(&text)),
            ..start(line)
        }),
        "info" => Body::AddInfo(AddInfo {
            run_id: RunId::new(line.word()).expect("a run id"),
            content: json(line),
        }),
        "task-info" => Body::AddTaskInfo(AddTaskInfo {
            token: token(world, &line.word()),
            content: json(line),
        }),
        "signal" => Body::SignalRun(SignalRun {
            run_id: run_id(line.word()),
            signal_type: SignalType::new(line.word()).expect("a signal type"),
            payload: json(line),
            scope: line
                .option("scope")
                .map(|path| ScopePathText::new(path).expect("a path")),
            signal_id: line
                .option("id")
                .map(|id| SignalId::new(id).expect("a signal id")),
        }),
        "complete-step" => Body::CompleteStep(CompleteStep {
            run_id: run_id(line.word()),
            selector: selector(line),
            report: task_report(line),
        }),
        "approve" | "reject" => Body::DecideApproval(decision(line, verb == "approve")),
        "cancel" => Body::CancelRun(CancelRun {
            run_id: run_id(line.word()),
            reason: line.option("reason"),
            is_forced: line.flag("force"),
        }),
        "resume" => Body::ResumeRun(ResumeRun {
            run_id: run_id(line.word()),
            from: line
                .option("from")
                .map(|step| StepName::new(step).expect("a step name")),
            revision: resume_revision(line),
            metadata: line.option("meta").map(Json::from_checked),
        }),
        "retry" => retry(world, line),
        _ => return on_verdicts(world, verb, line),
    })
}

/// What the leader computes for runs.
fn on_verdicts(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "decide-locks" => Body::DecideLocks(DecideLocks {
            run: world.run_number(&line.word()),
            verdict: match line.option("invalid") {
                None => LocksVerdict::Compiled(locks(&line.word())),
                Some(detail) => LocksVerdict::Invalid { detail },
            },
        }),
        "decide" => Body::DecideSchemaCheck(DecideSchemaCheck {
            run: world.run_number(&line.word()),
            activation: match line.flag("output") {
                true => view::RUN_OUTPUT_CHECK,
                false => line.next_number(),
            },
            attempt: line.number("attempt").unwrap_or(1),
            definition: DefinitionNumber(line.number("definition").expect("definition=N")),
            verdict: match line.option("invalid") {
                None => SchemaVerdict::Valid,
                Some(detail) => SchemaVerdict::Invalid { detail },
            },
        }),
        _ => return None,
    })
}

/// `step=gate scope=fan/stock visit=2`
fn selector(line: &mut Line) -> StepSelector {
    StepSelector {
        step: line
            .option("step")
            .map(|name| StepName::new(name).expect("a step name")),
        scope: line
            .option("scope")
            .map(|path| ScopePathText::new(path).expect("a path")),
        visit: line.number("visit"),
    }
}

/// `approve RUN step=gate scope=fan/stock visit=2 comment=fine`
fn decision(line: &mut Line, is_approved: bool) -> DecideApproval {
    DecideApproval {
        run_id: run_id(line.word()),
        selector: selector(line),
        is_approved,
        comment: line
            .option("comment")
            .map(|text| Comment::new(text).expect("a comment")),
    }
}

fn retry(world: &World, line: &mut Line) -> Body {
    let run_id = run_id(line.word());
    let found = view::find_run(&world.store, &Namespace::default_namespace(), &run_id);
    let found = found.expect("memory does not fail");
    Body::RetryRun(RetryRun {
        run: found.map_or(RunNumber(0), |(number, _)| number),
        run_id,
        from: line.option("from").map(|step| RetryFrom {
            step: StepName::new(step).expect("a step"),
            is_forced: line.flag("force"),
        }),
        start: start(line),
    })
}

fn resume_revision(line: &mut Line) -> Option<ResumeRevision> {
    let version = match line.flag("latest") {
        true => Some(VersionChoice::Latest),
        false => {
            let text = line.option("version");
            text.map(|text| version(text, line.number("revision")))
        }
    };
    let is_forced = line.flag("force");
    version.map(|version| ResumeRevision { version, is_forced })
}

fn version(text: String, revision: Option<u32>) -> VersionChoice {
    let version = WorkflowVersion::new(text).expect("a version");
    match revision {
        None => VersionChoice::Version(version),
        Some(revision) => VersionChoice::Revision(version, revision),
    }
}

fn start(line: &mut Line) -> StartRun {
    StartRun {
        workflow: WorkflowName::new(line.word()).expect("a workflow name"),
        input: json(line),
        version: match (line.option("version"), line.number("revision")) {
            (None, None) => VersionChoice::Latest,
            (None, Some(number)) => VersionChoice::Definition(DefinitionNumber(u64::from(number))),
            (Some(text), revision) => version(text, revision),
        },
        input_checked_for: line.number("checked-for").map(DefinitionNumber),
        idempotency_key: key(line),
        run_id: line.option("id").map(run_id),
        trace: None,
        start_time: line
            .number("at")
            .map(|ms| DueTime::At { ms })
            .or_else(|| line.number("after").map(|ms| DueTime::After { ms })),
        metadata: line.option("meta").map(Json::from_checked),
        target: line.option("target"),
        locks: line.option("locks").map(|patterns| locks(&patterns)),
    }
}

/// Locks that semicolons separate.
fn locks(patterns: &str) -> Vec<Lock> {
    patterns.split(';').map(lock).collect()
}

fn on_actions(verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "register" => register(line),
        "enable-action" | "disable-action" => Body::SetActionEnabled(SetActionEnabled {
            name: action(line),
            is_enabled: verb == "enable-action",
        }),
        "cancel-action-run" => Body::CancelActionRun(CancelActionRun {
            action_run: ActionRunNumber::from_id(&line.word()).expect("an action run"),
            reason: line.option("reason"),
        }),
        "delete-action" => Body::DeleteAction(DeleteAction { name: action(line) }),
        "invoke" => Body::InvokeAction(InvokeAction {
            name: action(line),
            input: json(line),
            priority: line.number("priority").unwrap_or(10),
            delay_ms: line.number("delay").unwrap_or(0),
            idempotency_key: key(line),
            labels: labels(line),
        }),
        "assign" => Body::AssignTasks(AssignTasks {
            action: action(line),
        }),
        _ => return None,
    })
}

fn register(line: &mut Line) -> Body {
    let digest = line.number("wasm").map(|byte: u8| [byte; 32]);
    Body::RegisterAction(Box::new(RegisterAction {
        name: action(line),
        kind: digest.map_or(ActionType::User, |digest| ActionType::Wasm {
            digest,
            limits: WasmLimits {
                max_memory_bytes: 16 << 20,
                max_output_bytes: 1 << 20,
            },
        }),
        module: digest.map(|digest| digest.to_vec()),
        timeout_ms: line.number("timeout").unwrap_or(30_000),
        max_retries: line.number("retries").unwrap_or(3),
        retry_delay_ms: line.number("delay").unwrap_or(1_000),
        description: line.option("description"),
        is_only_if_missing: line.flag("if-missing"),
    }))
}

fn on_tasks(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "complete" => Body::CompleteTask(CompleteTask {
            token: token(world, &line.word()),
            outcome: OutcomeName::new(line.word()).expect("an outcome"),
            not_before: due_time(line),
            output: json(line),
            state_patch: state_patch(line),
            usage: usage(line),
        }),
        "fail" => Body::FailTask(FailTask {
            token: token(world, &line.word()),
            kind: match line.word().as_str() {
                "retry" => FailKind::Retry,
                "no-retry" => FailKind::NoRetry,
                "non-retryable" => FailKind::NonRetryable,
                other => panic!("expected a kind of failure, but found {other}"),
            },
            code: line.option("code"),
            not_before: due_time(line),
            outcome: match line.option("outcome").as_deref() {
                None => FailureOutcome::Failure,
                Some("timeout") => FailureOutcome::Timeout,
                Some("execution_failure") => FailureOutcome::ExecutionFailure,
                Some(other) => panic!("expected an outcome of failures, but found {other}"),
            },
            message: message(line),
            state_patch: state_patch(line),
            usage: usage(line),
        }),
        "accept" => Body::AcceptTask(AcceptTask {
            token: token(world, &line.word()),
        }),
        "report" => Body::ReportTask(ReportTask {
            token: token(world, &line.word()),
            is_authentic: line.flag("authentic"),
            report: task_report(line),
        }),
        "touch" => Body::TouchTask(TouchTask {
            token: token(world, &line.word()),
            extend_ms: line.next_number(),
        }),
        _ => return None,
    })
}

fn on_workers(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "worker" => Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: worker_id(line),
            incarnation: line.number("incarnation").unwrap_or(1),
            kind: WorkerType::Action,
            max_concurrency: line.number("concurrency").unwrap_or(10),
            processes: processes(line),
            machine_id: None,
            metadata: None,
            node: line.number("node").map(NodeId),
            labels: labels(line),
        })),
        "heartbeat" => Body::HeartbeatWorker(HeartbeatWorker {
            worker_id: worker_id(line),
            incarnation: line.number("incarnation").unwrap_or(1),
            load: line.number("load").unwrap_or(0),
        }),
        "drain" => Body::DrainWorker(DrainWorker {
            worker_id: worker_id(line),
            incarnation: line.number("incarnation"),
        }),
        "deregister" => Body::DeregisterWorker(DeregisterWorker {
            worker_id: worker_id(line),
            incarnation: line.number("incarnation"),
        }),
        "release" => Body::ReleaseWorker(release(world, line)),
        "begin-term" => Body::BeginTerm(BeginTerm {
            term: line.next_number(),
        }),
        "sweep" => Body::SweepRequests(SweepRequests {}),
        "sweep-runs" => Body::SweepRuns(SweepRuns {}),
        _ => return None,
    })
}

fn on_plans(verb: &str, line: &mut Line) -> Option<Body> {
    let workflow = |name: String| WorkflowName::new(name).expect("a workflow name");
    Some(match verb {
        "invalidate" => Body::InvalidateCache(InvalidateCache {
            event: EventName::new(line.word()).expect("an event name"),
            workflow: line.option("workflow").map(workflow),
            after: None,
        }),
        "reset-plan" => Body::ResetPlan(ResetPlan {
            workflow: workflow(line.word()),
            plan: PlanName::new(line.word()).expect("a plan name"),
            executor: line
                .next()
                .map(|name| ExecutorName::new(name).expect("an executor name")),
        }),
        _ => return None,
    })
}

fn worker_id(line: &mut Line) -> WorkerId {
    WorkerId::new(line.word()).expect("a worker id")
}

/// What the leader does about a worker of a lost node; with `stopped`, what the node does that stops.
fn release(world: &World, line: &mut Line) -> ReleaseWorker {
    let worker_id = worker_id(line);
    let incarnation = line.number("incarnation").unwrap_or(1);
    if line.flag("stopped") {
        let departure = Departure::Stopped;
        return ReleaseWorker {
            worker_id,
            incarnation,
            departure,
        };
    }
    let last_heartbeat_at_ms = line.number("heard").unwrap_or_else(|| {
        let known = view::worker(&world.store, &line.namespace(), &worker_id);
        let known = known.expect("memory does not fail");
        known.map_or(0, |known| known.activity.last_heartbeat_at_ms)
    });
    ReleaseWorker {
        worker_id,
        incarnation,
        departure: Departure::Lost {
            last_heartbeat_at_ms,
        },
    }
}

/// The processes of `actions=A,B` and `groups=STREAM/GROUP`.
fn processes(line: &mut Line) -> Vec<Process> {
    let mut processes = Vec::new();
    let kinds = [
        ("actions", ProcessKind::Action),
        ("groups", ProcessKind::StreamConsumer),
    ];
    for (option, kind) in kinds {
        let names = line.option(option).unwrap_or_default();
        let names = names.split(',').filter(|name| !name.is_empty());
        processes.extend(names.map(|name| Process {
            name: name.to_owned(),
            kind,
        }));
    }
    processes
}

/// `arun-1` is the token handed out last, `arun-1#1` the first one, `arun-1#0` one never given;
/// `wfrun-1` is that of the action which the run waits for.
fn token(world: &World, text: &str) -> TaskToken {
    let (id, which) = match text.split_once('#') {
        Some((id, which)) => (id, Some(which.parse().expect("the token's position"))),
        None => (text, None),
    };
    let number = ActionRunNumber::from_id(id).unwrap_or_else(|| world.awaited_action(id));
    let known = world.tokens.get(&number).map_or(&[][..], Vec::as_slice);
    let position: usize = which.unwrap_or(known.len());
    let forged = TaskToken {
        action_run: number,
        attempt: 1,
        secret: 0,
    };
    position
        .checked_sub(1)
        .map_or(forged, |position| known[position])
}

/// What is left of the options are labels.
pub(super) fn labels(line: &mut Line) -> BTreeMap<String, String> {
    line.options().into_iter().collect()
}

pub(super) fn run_id(text: String) -> RunId {
    RunId::new(text).expect("a run id")
}

fn action(line: &mut Line) -> ActionName {
    ActionName::new(line.word()).expect("an action name")
}

fn key(line: &mut Line) -> Option<IdempotencyKey> {
    let key = line.option("key")?;
    Some(IdempotencyKey::new(key).expect("an idempotency key"))
}

/// What went wrong; `LONG` in it stands for 5,000 letters.
fn message(line: &mut Line) -> String {
    let text = line.next().unwrap_or_else(|| "broken".to_owned());
    text.replace("LONG", &"x".repeat(5_000))
}

/// `at=TIME` or `after=DELAY`
fn due_time(line: &mut Line) -> Option<DueTime> {
    let at = line.number("at").map(|ms| DueTime::At { ms });
    at.or_else(|| line.number("after").map(|ms| DueTime::After { ms }))
}

/// `state={"count":1}`: the patch of the state.
fn usage(line: &mut Line) -> Option<Json> {
    line.option("usage").map(long_json)
}

fn state_patch(line: &mut Line) -> Option<Json> {
    line.option("state").map(long_json)
}

/// `OUTCOME after=500 JSON`
fn task_report(line: &mut Line) -> TaskReport {
    TaskReport {
        outcome: OutcomeName::new(line.word()).expect("an outcome"),
        not_before: due_time(line),
        output: json(line),
        state_patch: state_patch(line),
        usage: usage(line),
    }
}

/// JSON as written; some names in it stand for [long texts](long_texts).
fn json(line: &mut Line) -> Json {
    let text = line.next();
    long_json(text.unwrap_or_else(|| "{}".to_owned()))
}

fn long_json(text: String) -> Json {
    Json::from_checked(long_texts(&text))
}
