//! A worker: polls the leader, works for a while, reports. Sometimes its process dies.

use super::caller::Caller;
use super::workload::{ACTIONS, LEASE_MS, action};
use crate::network::{Host, OUTSIDE, Route};
use crate::node::Polled;
use crate::record::Outcome;
use flotilla_engine::ids::{Namespace, OutcomeName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::{
    Assignment, Body, CompleteTask, FailKind, FailTask, FailureOutcome, Offer, RegisterWorker,
    TaskToken, TouchTask,
};
use flotilla_engine::{Process, ProcessKind, WorkerType};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a worker waits for the response to a poll.
const TIMEOUT: Duration = Duration::from_millis(4_000);

/// A worker with one slot.
pub(crate) struct Worker {
    pub(crate) caller: Caller,
    /// The node that it believes to be the leader.
    pub(crate) leader: Option<Host>,
}

impl Worker {
    /// Works until the simulation ends.
    pub(crate) async fn run(mut self) {
        loop {
            self.register().await;
            // A process dies after some tasks, sometimes while it holds one.
            let tasks = self.caller.random.within(5..60);
            for _ in 0..tasks {
                let assignment = self.await_task().await;
                self.caller.pause(1..60).await;
                self.report(assignment).await;
            }
            if self.caller.random.chance(500) {
                drop(self.await_task().await);
            }
            self.caller.pause(0..1_000).await;
        }
    }

    /// Registers a new process: tasks held by the old one are released.
    async fn register(&mut self) {
        let process = |name: &str| Process {
            name: name.to_owned(),
            kind: ProcessKind::Action,
        };
        let body = Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: self.id(),
            incarnation: self.caller.random.draw(),
            kind: WorkerType::Action,
            max_concurrency: 1,
            processes: ACTIONS.map(process).to_vec(),
            labels: BTreeMap::new(),
            metadata: None,
            machine_id: None,
            node: None,
        }));
        let command = self.caller.command(body);
        self.caller.insist(command).await;
    }

    async fn await_task(&mut self) -> Assignment {
        loop {
            let route = match self.leader.take() {
                Some(to) => Route { from: OUTSIDE, to },
                None => self.caller.route(),
            };
            let offer = self.offer();
            let polled = self.caller.network.call_once(route, move |process| {
                let offer = offer.clone();
                Box::pin(async move {
                    match process.gateway {
                        Some(gateway) => gateway.poll(offer, &[]).await,
                        None => Polled::NotLeader(None),
                    }
                })
            });
            match tokio::time::timeout(TIMEOUT, polled).await {
                Ok(Ok(Polled::Task(assignment))) => {
                    self.leader = Some(route.to);
                    return *assignment;
                }
                Ok(Ok(Polled::Nothing)) => self.leader = Some(route.to),
                Ok(Ok(Polled::NotLeader(leader))) => {
                    self.leader = leader;
                    self.caller.pause(5..50).await;
                }
                Ok(Err(_)) | Err(_) => self.caller.pause(5..50).await,
            }
        }
    }

    async fn report(&mut self, assignment: Assignment) {
        let token = assignment.token;
        if self.caller.random.chance(100) {
            let extend_ms = self.caller.random.within(LEASE_MS..2 * LEASE_MS);
            let touch = Body::TouchTask(TouchTask { token, extend_ms });
            let command = self.caller.command(touch);
            self.caller.submit(command).await;
        }
        let body = if self.caller.random.chance(100) {
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
        let command = self.caller.command_without_id(body);
        let outcome: Outcome = self.caller.submit(command).await;
        let text = format!("is done with {token}: {outcome:?}");
        self.caller.record.say(&self.caller.name, &text);
    }

    fn offer(&self) -> Offer {
        Offer {
            namespace: Namespace::default_namespace(),
            worker: self.id(),
            poll: 0,
            actions: ACTIONS.map(action).to_vec(),
            labels: BTreeMap::new(),
            slots: 1,
        }
    }

    fn id(&self) -> WorkerId {
        WorkerId::new(self.caller.name.clone()).expect("a valid id")
    }
}

/// Writes a key of the task's own to the state of its run.
fn patch(token: TaskToken) -> Json {
    Json::from_checked(format!("{{\"{}\":1}}", token.action_run))
}

/// Each attempt counts itself, under the name of its task.
fn usage(token: TaskToken) -> Json {
    Json::from_checked(format!("{{\"{}\":1}}", token.action_run))
}
