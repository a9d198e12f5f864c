//! A worker: has a stream to the leader, works for a while on several tasks, reports. Sometimes its process dies.

use super::caller::Caller;
use super::workload::{ACTIONS, LEASE_MS, action};
use crate::network::{Host, OUTSIDE, Route};
use crate::node::{FromLeader, Link, ToLeader, serve_worker};
use crate::record::Outcome;
use flotilla_engine::ids::{Namespace, OutcomeName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::{
    Assignment, Body, CompleteTask, FailKind, FailTask, FailureOutcome, RegisterWorker, TaskToken,
    TouchTask,
};
use flotilla_engine::{Process, ProcessKind, WorkerType};
use flotilla_leader::{Poller, WorkerKey};
use flotilla_worker::Ledger;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many tasks a worker works on at the same time.
const SLOTS: u32 = 3;

/// A worker, whose processes follow each other.
pub(crate) struct Worker {
    caller: Caller,
    /// The number of its process.
    incarnation: u64,
    /// The node that it believes to be the leader.
    leader: Option<Host>,
    /// The tasks that its process holds.
    ledger: Ledger<TaskToken, ()>,
}

/// The tasks in progress; each ends with its token.
type Jobs = FuturesUnordered<BoxFuture<'static, TaskToken>>;

impl Worker {
    /// A worker without a process.
    pub(crate) fn new(caller: Caller) -> Self {
        Self {
            caller,
            incarnation: 0,
            leader: None,
            ledger: new_ledger(),
        }
    }

    /// Works until the simulation ends.
    pub(crate) async fn run(mut self) {
        loop {
            self.ledger = new_ledger();
            self.register().await;
            // A process dies after some tasks, usually while it holds one.
            let tasks_count = self.caller.random.within(5..60);
            self.work(tasks_count).await;
            self.caller.pause(0..1_000).await;
        }
    }

    /// Registers a new process: tasks held by the old one are released.
    async fn register(&mut self) {
        let process = |name: &str| Process {
            name: name.to_owned(),
            kind: ProcessKind::Action,
        };
        self.incarnation = self.caller.random.draw();
        let body = Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: self.id(),
            incarnation: self.incarnation,
            kind: WorkerType::Action,
            max_concurrency: SLOTS,
            processes: ACTIONS.map(process).to_vec(),
            labels: BTreeMap::new(),
            metadata: None,
            machine_id: None,
            node: None,
        }));
        let command = self.caller.command(body);
        self.caller.insist(command).await;
    }

    /// Works until this many tasks were begun.
    async fn work(&mut self, tasks_count: u64) {
        let mut jobs = Jobs::new();
        let mut begun_count = 0;
        let mut link = self.connect(&mut jobs).await;
        while begun_count < tasks_count {
            if let Some(total) = self.ledger.offer(SLOTS as usize) {
                // If the stream has ended, the next message says so.
                let _ = link.outgoing.send(ToLeader::Slots(total)).await;
            }
            tokio::select! {
                message = link.incoming.next() => match message {
                    Some(Ok(FromLeader::Task(assignment))) => {
                        if self.ledger.receive(assignment.token, ()) {
                            begun_count += 1;
                            jobs.push(self.begin(*assignment));
                        }
                    }
                    Some(Ok(FromLeader::NotLeader(leader))) => {
                        self.leader = leader;
                        link = self.connect(&mut jobs).await;
                    }
                    Some(Err(_)) | None => link = self.connect(&mut jobs).await,
                },
                Some(token) = jobs.next() => self.ledger.close(&token),
            }
        }
    }

    /// Opens a stream to the node that it believes to be the leader, or to any. The jobs continue meanwhile.
    async fn connect(&mut self, jobs: &mut Jobs) -> Link {
        loop {
            let pause = self.caller.random.within(5..50);
            let mut pause = Box::pin(tokio::time::sleep(Duration::from_millis(pause)));
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    Some(token) = jobs.next() => self.ledger.close(&token),
                }
            }
            let route = match self.leader.take() {
                Some(to) => Route { from: OUTSIDE, to },
                None => self.caller.route(),
            };
            let hello = [ToLeader::Hello(self.poller())];
            let link = Link::open(&self.caller.network, route, &hello, serve_worker).await;
            let text = format!("has a stream to {}: {}", route.to, link.is_some());
            self.caller.record.say(&self.caller.name, &text);
            if let Some(link) = link {
                self.ledger.open();
                return link;
            }
        }
    }

    fn poller(&self) -> Poller {
        Poller {
            key: WorkerKey {
                namespace: Namespace::default_namespace(),
                worker: self.id(),
            },
            incarnation: self.incarnation,
            actions: ACTIONS.map(action).into(),
            held: self.ledger.held().keys().copied().collect(),
        }
    }

    /// Begins a task: works for a while and reports.
    fn begin(&mut self, assignment: Assignment) -> BoxFuture<'static, TaskToken> {
        let token = assignment.token;
        self.caller
            .record
            .begun(&self.id(), self.incarnation, token);
        let mut caller = self.caller.branch();
        Box::pin(async move {
            caller.pause(1..60).await;
            report(&mut caller, token).await;
            token
        })
    }

    fn id(&self) -> WorkerId {
        WorkerId::new(self.caller.name.clone()).expect("a valid id")
    }
}

fn new_ledger() -> Ledger<TaskToken, ()> {
    Ledger::new(SLOTS as usize)
}

async fn report(caller: &mut Caller, token: TaskToken) {
    if caller.random.chance(100) {
        let extend_ms = caller.random.within(LEASE_MS..2 * LEASE_MS);
        let touch = Body::TouchTask(TouchTask { token, extend_ms });
        let command = caller.command(touch);
        caller.submit(command).await;
    }
    let body = if caller.random.chance(100) {
        Body::FailTask(FailTask {
            token,
            kind: FailKind::Retry,
            code: None,
            message: "the simulation says so".to_owned(),
            outcome: FailureOutcome::Failure,
            not_before: None,
            state_patch: None,
            usage: Some(usage(token)),
        })
    } else {
        Body::CompleteTask(CompleteTask {
            token,
            outcome: OutcomeName::new("success").expect("a valid outcome"),
            output: Json::string(&token.to_string()),
            not_before: None,
            state_patch: Some(patch(token)),
            usage: Some(usage(token)),
        })
    };
    // The token makes a retry safe.
    let command = caller.command_without_id(body);
    let outcome: Outcome = caller.submit(command).await;
    let text = format!("is done with {token}: {outcome:?}");
    caller.record.say(&caller.name, &text);
}

/// Writes a key of the task's own to the state of its run.
fn patch(token: TaskToken) -> Json {
    Json::from_checked(format!("{{\"{}\":1}}", token.action_run))
}

/// Each attempt counts itself, under the name of its task.
fn usage(token: TaskToken) -> Json {
    Json::from_checked(format!("{{\"{}\":1}}", token.action_run))
}
