//! A replica that plays random moves: what they mean depends on the state that they meet.

use super::data;
use super::definitions::DEFINITIONS;
use super::moves::{self, Intent, Move, OfferPlan};
use super::{dead_letters, results, schedule, verdicts};
use crate::invariants::rows;
use crate::script::define;
use flotilla_engine::ids::{
    ActionName, ActionRunNumber, EventName, ExecutorName, IdempotencyKey, Namespace, OutcomeName,
    PlanName, RunId, RunNumber, SignalId, SignalType, WorkerId, WorkflowName,
};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    ActionRuns, ActionType, DefinitionNumber, Process, ProcessKind, TimerKey, TimerKind, Timers,
    WorkerType,
};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{
    AcceptTask, Applied, AssignTasks, BeginTerm, Body, Budgets, CancelActionRun, CancelRun,
    Command, CommandEnvelope, CompleteTask, CreateDefinition, DeleteAction, DeleteWorkflow,
    Departure, DeregisterWorker, DrainWorker, DueTime, ENGINE_VERSION, Effect, Engine, Entry,
    FailKind, FailTask, FailureOutcome, FireTimer, HeartbeatWorker, InvalidateCache, InvokeAction,
    NodeId, Offer, PurgeDeadLetters, RegisterAction, RegisterWorker, ReleaseWorker, ReportTask,
    RequestId, RequeueDeadLetters, ResetPlan, ResumeRun, SetActionEnabled, SetWorkflowEnabled,
    SignalRun, Stamp, StartRun, SweepRequests, SweepRuns, TaskReport, TaskToken, TouchTask,
    TraceContext, VersionChoice, view,
};
use std::collections::BTreeMap;

const ACTIONS: [&str; 4] = ["a", "b", "c", "missing"];
const WORKFLOWS: [&str; 12] = [
    "work", "leaf", "checked", "parent", "rounds", "strict", "timed", "none", "planned", "turns",
    "fanned", "looped",
];
const WORKERS: [&str; 4] = ["w0", "w1", "w2", "w3"];
const SIGNALS: [&str; 3] = ["go", "tick", "other"];
const OUTCOMES: [&str; 5] = [
    "success",
    "pending",
    "failure",
    "pending",
    "execution_failure",
];
const EXECUTORS: [&str; 3] = ["one", "two", "unknown"];
const CODES: [&str; 3] = ["busy", "fraud", "timeout"];

pub(super) struct Player {
    pub(super) engine: Engine,
    pub(super) store: MemoryStore,
    pub(super) raft_index: u64,
    pub(super) now_ms: u64,
    pub(super) tokens: Vec<TaskToken>,
    /// The entries that it has played since it was set up.
    pub(super) log: Vec<Entry>,
    budgets: Budgets,
}

impl Player {
    /// A replica with workflows, actions and workers, whose later entries have these budgets.
    pub(super) fn with(budgets: Budgets) -> Self {
        let mut player = Self::new();
        player.budgets = budgets;
        player.reopen();
        player
    }

    /// The number of a run; 0 if there is none with this id.
    pub(super) fn number_of(&self, run_id: &RunId) -> RunNumber {
        let found = view::find_run(&self.store, &Namespace::default_namespace(), run_id);
        let found = found.expect("memory does not fail");
        found.map_or(RunNumber(0), |(number, _)| number)
    }

    /// A replica with workflows, actions and workers.
    pub(super) fn new() -> Self {
        let store = MemoryStore::default();
        let mut player = Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            now_ms: 0,
            tokens: Vec::new(),
            log: Vec::new(),
            budgets: Budgets::default(),
        };
        let definitions = DEFINITIONS.map(|text| create(text, "as written"));
        let actions = [0, 1, 2].map(|action| Intent::Register { action, retries: 1 });
        let workers = [0, 1, 2].map(|worker| Intent::Worker {
            worker,
            incarnation: 1,
        });
        let intents = actions.into_iter().chain(workers);
        let others: Vec<Body> = intents.map(|intent| player.body(&intent)).collect();
        let commands = definitions.into_iter().chain(others).map(command);
        let entry = Entry {
            stamp: player.stamp(),
            offers: Vec::new(),
            commands: commands.collect(),
        };
        player.play(&entry);
        player.log.clear();
        player
    }

    /// The entry that a move stands for now.
    pub(super) fn entry(&mut self, one: &Move) -> Entry {
        self.now_ms += one.forward_ms;
        let commands = one.commands.iter().map(|(intent, request)| Command {
            request_id: request.map(|request| RequestId(u128::from(request))),
            ..self.body(intent).into_command(namespace(intent))
        });
        Entry {
            stamp: self.stamp(),
            commands: commands.map(Command::by_anyone).collect(),
            offers: (0..)
                .zip(&one.offers)
                .map(|(poll, plan)| offer(poll, plan))
                .collect(),
        }
    }

    /// Applies and writes an entry.
    pub(super) fn play(&mut self, entry: &Entry) -> Applied {
        self.raft_index += 1;
        self.log.push(entry.clone());
        let applied = self
            .engine
            .apply(&self.store, self.raft_index, entry)
            .expect("memory does not fail");
        self.store.write(&applied.writes);
        for effect in &applied.effects {
            if let Effect::DeliverTask { assignment, .. } = effect {
                self.tokens.push(assignment.token);
            }
        }
        applied
    }

    /// Forgets all caches.
    pub(super) fn reopen(&mut self) {
        self.engine = Engine::open(&self.store, ENGINE_VERSION).expect("memory does not fail");
        self.engine.set_budgets(self.budgets);
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            now_ms: self.now_ms,
            seed: self.raft_index.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            node: NodeId(1),
        }
    }

    fn body(&self, intent: &Intent) -> Body {
        match intent {
            Intent::Create { .. }
            | Intent::CreateScheduled { .. }
            | Intent::EnableWorkflow { .. }
            | Intent::DeleteWorkflow { .. }
            | Intent::Start { .. }
            | Intent::Signal { .. }
            | Intent::Resume { .. }
            | Intent::Retry { .. }
            | Intent::Cancel { .. }
            | Intent::Info { .. }
            | Intent::Decide { .. } => self.on_runs(intent),
            Intent::Register { .. }
            | Intent::DeleteAction { .. }
            | Intent::EnableAction { .. }
            | Intent::Invoke { .. }
            | Intent::Assign { .. } => on_actions(intent),
            Intent::CancelActionRun { pick } => self.cancel_action_run(*pick),
            Intent::Complete { .. }
            | Intent::Fail { .. }
            | Intent::Touch { .. }
            | Intent::Accept { .. }
            | Intent::Report { .. }
            | Intent::Forge { .. } => self.on_tasks(intent),
            Intent::Invalidate { .. } | Intent::ResetPlan { .. } => on_plans(intent),
            Intent::Worker { .. }
            | Intent::Heartbeat { .. }
            | Intent::Drain { .. }
            | Intent::Deregister { .. } => on_workers(intent),
            Intent::Release {
                worker,
                incarnation,
                is_lost,
            } => self.release(*worker, u64::from(*incarnation), *is_lost),
            Intent::Fire { timer } => Body::FireTimer(FireTimer {
                timer: self.timer(*timer),
            }),
            Intent::FireGone { run, due_ms } => Body::FireTimer(FireTimer {
                timer: step_wake(u64::from(*run), *due_ms),
            }),
            Intent::BeginTerm { term } => Body::BeginTerm(BeginTerm {
                term: u64::from(*term),
            }),
            Intent::Sweep => Body::SweepRequests(SweepRequests {}),
            Intent::SweepRuns => Body::SweepRuns(SweepRuns {}),
            Intent::Requeue {
                action,
                dead_letter,
            } => Body::RequeueDeadLetters(RequeueDeadLetters {
                action: action_name(*action),
                dead_letters: dead_letters::choice(&self.store, *dead_letter),
            }),
            Intent::Purge {
                action,
                dead_letter,
            } => Body::PurgeDeadLetters(PurgeDeadLetters {
                action: action_name(*action),
                dead_letters: dead_letters::choice(&self.store, *dead_letter),
            }),
            Intent::Schedule {
                pick,
                forward_ms,
                is_wrong,
            } => schedule::command(&self.store, *pick, *forward_ms, *is_wrong),
            Intent::Data { intent, .. } => data::body(&self.store, intent),
        }
    }

    /// Releases a worker as a caller does who has just looked.
    fn release(&self, worker: u8, incarnation: u64, is_lost: bool) -> Body {
        let worker_id = worker_id(worker);
        let namespace = Namespace::default_namespace();
        let known = view::worker(&self.store, &namespace, &worker_id);
        let known = known.expect("memory does not fail");
        let lost = Departure::Lost {
            last_heartbeat_at_ms: known.map_or(0, |known| known.activity.last_heartbeat_at_ms),
        };
        Body::ReleaseWorker(ReleaseWorker {
            worker_id,
            incarnation,
            departure: if is_lost { lost } else { Departure::Stopped },
        })
    }

    fn cancel_action_run(&self, pick: u8) -> Body {
        let action_runs = rows::<ActionRuns>(&self.store, &());
        let position = usize::from(pick) % action_runs.len().max(1);
        let picked = action_runs.get(position).map(|(number, _)| *number);
        Body::CancelActionRun(CancelActionRun {
            action_run: picked.unwrap_or(ActionRunNumber(99)),
            reason: None,
        })
    }

    fn on_runs(&self, intent: &Intent) -> Body {
        match intent {
            Intent::Create { version, is_other } => {
                let target = if *is_other {
                    "flo.Failed"
                } else {
                    "flo.Completed"
                };
                let text = format!("define leaf {version}\n start: run @b -> success={target}");
                create(&text, "again")
            }
            Intent::CreateScheduled {
                is_paused,
                catchup_ms,
            } => create(&schedule::definition(*is_paused, *catchup_ms), "again"),
            Intent::EnableWorkflow {
                workflow,
                is_enabled,
            } => Body::SetWorkflowEnabled(SetWorkflowEnabled {
                workflow: workflow_name(*workflow),
                is_enabled: *is_enabled,
            }),
            Intent::DeleteWorkflow { workflow } => Body::DeleteWorkflow(DeleteWorkflow {
                workflow: workflow_name(*workflow),
            }),
            Intent::Start {
                workflow,
                key,
                id,
                is_traced,
            } => {
                let trace = is_traced.then(|| self.trace());
                Body::StartRun(StartRun {
                    trace,
                    ..start(*workflow, *key, *id)
                })
            }
            Intent::Signal { run, kind, id } => Body::SignalRun(SignalRun {
                run_id: run_id(*run),
                signal_type: SignalType::new(pick(&SIGNALS, *kind)).expect("a type"),
                payload: Json::from_checked("{\"s\":1}".to_owned()),
                scope: None,
                signal_id: id.map(|id| SignalId::new(format!("s{id}")).expect("an id")),
            }),
            Intent::Retry {
                run,
                workflow,
                from,
            } => self.retry(&run_id(*run), *workflow, *from),
            Intent::Resume { run } => Body::ResumeRun(ResumeRun {
                run_id: run_id(*run),
                from: None,
                revision: None,
                metadata: None,
            }),
            Intent::Info { run, token } => {
                moves::info(run_id(*run), token.map(|token| self.token(token)))
            }
            Intent::Cancel { run } => Body::CancelRun(CancelRun {
                run_id: run_id(*run),
                reason: None,
                is_forced: run % 4 == 3,
            }),
            Intent::Decide {
                pick,
                is_valid,
                is_stale,
            } => verdicts::decide(&self.store, *pick, *is_valid, *is_stale),
            other => panic!("{other:?} is about something else"),
        }
    }

    /// Another one for each entry.
    fn trace(&self) -> TraceContext {
        let parent_id = (self.raft_index + 1).to_be_bytes();
        TraceContext::new([7; 16], parent_id, true).expect("both ids name something")
    }

    fn on_tasks(&self, intent: &Intent) -> Body {
        match intent {
            Intent::Complete { token, outcome } => Body::CompleteTask(CompleteTask {
                token: self.token(*token),
                outcome: OutcomeName::new(pick(&OUTCOMES, *outcome)).expect("an outcome"),
                output: Json::from_checked("{\"out\":1}".to_owned()),
                not_before: results::not_before(*outcome),
                state_patch: results::state_patch(*token),
                usage: results::usage(*token),
            }),
            Intent::Fail { token, kind, code } => Body::FailTask(FailTask {
                token: self.token(*token),
                kind: [FailKind::Retry, FailKind::NoRetry, FailKind::NonRetryable]
                    [usize::from(*kind)],
                code: code.map(|code| pick(&CODES, code).to_owned()),
                message: "broken".to_owned(),
                outcome: FailureOutcome::Failure,
                not_before: code.and_then(results::not_before),
                state_patch: results::state_patch(*token),
                usage: results::usage(*token),
            }),
            Intent::Touch { token, extend_ms } => Body::TouchTask(TouchTask {
                token: self.token(*token),
                extend_ms: *extend_ms,
            }),
            Intent::Accept { token } => Body::AcceptTask(AcceptTask {
                token: self.token(*token),
            }),
            Intent::Report { token, outcome } => Body::ReportTask(ReportTask {
                token: self.token(*token),
                is_authentic: false,
                report: TaskReport {
                    outcome: OutcomeName::new(pick(&OUTCOMES, *outcome)).expect("an outcome"),
                    output: Json::from_checked("{\"report\":1}".to_owned()),
                    not_before: results::not_before(*outcome),
                    state_patch: results::state_patch(*token),
                    usage: results::usage(*token),
                },
            }),
            Intent::Forge { action_run } => Body::TouchTask(TouchTask {
                token: TaskToken {
                    action_run: ActionRunNumber(u64::from(*action_run) % 20),
                    attempt: 1,
                    secret: 0,
                },
                extend_ms: 1,
            }),
            other => panic!("{other:?} is about something else"),
        }
    }

    /// One of the last tokens that were handed out: late ones among them.
    fn token(&self, pick: u8) -> TaskToken {
        let recent: Vec<&TaskToken> = self.tokens.iter().rev().take(8).collect();
        let forged = TaskToken {
            action_run: ActionRunNumber(1),
            attempt: 1,
            secret: 0,
        };
        let position = usize::from(pick) % recent.len().max(1);
        recent.get(position).map_or(forged, |token| **token)
    }

    /// A timer that is set; mostly one that is due.
    fn timer(&self, pick: u8) -> TimerKey {
        let all = rows::<Timers>(&self.store, &());
        let (due, later): (Vec<TimerKey>, Vec<TimerKey>) = all
            .into_iter()
            .map(|(timer, ())| timer)
            .partition(|timer| timer.due_ms <= self.now_ms);
        let choice = if due.is_empty() { later } else { due };
        let position = usize::from(pick) % choice.len().max(1);
        choice.get(position).copied().unwrap_or(step_wake(1, 1))
    }
}

/// A command in the default namespace.
pub(super) fn command(body: Body) -> CommandEnvelope {
    body.into_command(Namespace::default_namespace())
        .by_anyone()
}

/// Only what callers keep lives in two namespaces.
fn namespace(intent: &Intent) -> Namespace {
    match intent {
        Intent::Data { is_elsewhere, .. } if *is_elsewhere => {
            Namespace::new("default.elsewhere").expect("a name")
        }
        _ => Namespace::default_namespace(),
    }
}

/// Makes a definition the latest revision of its workflow.
pub(super) fn create(text: &str, source: &str) -> Body {
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition: define(text),
        source: source.to_owned(),
        make_latest: true,
    }))
}

pub(super) fn start(workflow: u8, key: Option<u8>, id: Option<u8>) -> StartRun {
    StartRun {
        workflow: workflow_name(workflow),
        version: VersionChoice::Latest,
        input: Json::from_checked(format!("{{\"n\":{}}}", id.or(key).unwrap_or(9))),
        input_checked_for: Some(DefinitionNumber(3)),
        idempotency_key: key.map(|key| IdempotencyKey::new(format!("k{key}")).expect("a key")),
        run_id: id.map(|id| RunId::new(format!("run-{id}")).expect("an id")),
        trace: None,
        // Some begin later.
        start_time: (workflow % 3 == 1 && key.is_none()).then_some(DueTime::After { ms: 30 }),
        metadata: None,
        target: None,
        locks: None,
    }
}

fn on_actions(intent: &Intent) -> Body {
    match intent {
        Intent::Register { action, retries } => Body::RegisterAction(Box::new(RegisterAction {
            name: action_name(*action),
            kind: ActionType::User,
            module: None,
            timeout_ms: 1_000,
            max_retries: *retries,
            retry_delay_ms: 100,
            description: None,
            is_only_if_missing: false,
        })),
        Intent::EnableAction { action, is_enabled } => Body::SetActionEnabled(SetActionEnabled {
            name: action_name(*action),
            is_enabled: *is_enabled,
        }),
        Intent::DeleteAction { action } => Body::DeleteAction(DeleteAction {
            name: action_name(*action),
        }),
        Intent::Invoke {
            action,
            priority,
            delay_ms,
            labels: required,
            key,
        } => Body::InvokeAction(InvokeAction {
            name: action_name(*action),
            input: Json::null(),
            priority: *priority,
            delay_ms: *delay_ms,
            labels: labels(*required),
            idempotency_key: key.map(|key| IdempotencyKey::new(format!("k{key}")).expect("a key")),
        }),
        Intent::Assign { action } => Body::AssignTasks(AssignTasks {
            action: action_name(*action),
        }),
        other => panic!("{other:?} is about something else"),
    }
}

fn on_plans(intent: &Intent) -> Body {
    match intent {
        Intent::Invalidate { is_named, workflow } => Body::InvalidateCache(InvalidateCache {
            event: EventName::new(if *is_named { "refunded" } else { "other" }).expect("a name"),
            workflow: workflow.map(workflow_name),
            after: None,
        }),
        Intent::ResetPlan { executor } => Body::ResetPlan(ResetPlan {
            workflow: WorkflowName::new("planned").expect("a name"),
            plan: PlanName::new("pay").expect("a name"),
            executor: executor.map(|one| ExecutorName::new(pick(&EXECUTORS, one)).expect("a name")),
        }),
        other => panic!("{other:?} is about something else"),
    }
}

fn on_workers(intent: &Intent) -> Body {
    match intent {
        Intent::Worker {
            worker,
            incarnation,
        } => Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: worker_id(*worker),
            incarnation: u64::from(*incarnation),
            kind: WorkerType::Action,
            max_concurrency: 10,
            processes: vec![Process {
                name: "a".to_owned(),
                kind: ProcessKind::Action,
            }],
            labels: BTreeMap::new(),
            metadata: None,
            machine_id: None,
            node: None,
        })),
        Intent::Heartbeat {
            worker,
            incarnation,
        } => Body::HeartbeatWorker(HeartbeatWorker {
            worker_id: worker_id(*worker),
            incarnation: u64::from(*incarnation),
            load: 1,
        }),
        Intent::Drain { worker } => Body::DrainWorker(DrainWorker {
            worker_id: worker_id(*worker),
            incarnation: None,
        }),
        Intent::Deregister {
            worker,
            incarnation,
        } => Body::DeregisterWorker(DeregisterWorker {
            worker_id: worker_id(*worker),
            incarnation: Some(u64::from(*incarnation)),
        }),
        other => panic!("{other:?} is about something else"),
    }
}

pub(super) fn offer(poll: u64, plan: &OfferPlan) -> Offer {
    Offer {
        namespace: Namespace::default_namespace(),
        worker: worker_id(plan.worker),
        poll,
        actions: [0, 1, 2].map(action_name).to_vec(),
        labels: labels(plan.labels),
        slots: plan.slots,
    }
}

/// None, one or two labels.
fn labels(count: u8) -> BTreeMap<String, String> {
    let labels = [("gpu", "yes"), ("zone", "eu")].into_iter();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    labels.take(usize::from(count)).map(owned).collect()
}

/// The runs that the engine named, and those that callers did.
fn run_id(pick: u8) -> RunId {
    let text = match pick {
        0..3 => format!("run-{pick}"),
        number => format!("wfrun-{}", number - 2),
    };
    RunId::new(text).expect("an id")
}

fn step_wake(subject: u64, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::StepWake,
        due_ms,
        subject,
        detail: 1,
    }
}

/// One of the names.
pub(super) fn pick(names: &[&'static str], position: u8) -> &'static str {
    names[usize::from(position) % names.len()]
}

fn action_name(position: u8) -> ActionName {
    ActionName::new(pick(&ACTIONS, position)).expect("a name")
}

fn workflow_name(position: u8) -> WorkflowName {
    WorkflowName::new(pick(&WORKFLOWS, position)).expect("a name")
}

fn worker_id(position: u8) -> WorkerId {
    WorkerId::new(pick(&WORKERS, position)).expect("an id")
}

/// A workflow of the default namespace.
pub(super) fn default_key(workflow: &str) -> (Namespace, WorkflowName) {
    let name = WorkflowName::new(workflow).expect("a name");
    (Namespace::default_namespace(), name)
}
