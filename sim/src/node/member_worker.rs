//! The worker of a node: like an embedded worker, it runs in the process of a member, and its stream goes to the leader
//! that this member knows. The call states cluster, sender and receiver.

use super::gateway::{Gateway, Submitted};
use super::worker_stream::{FromLeader, Link, MemberCall, ToLeader, serve_member};
use crate::cluster::Member;
use crate::network::{Host, Network, Route};
use crate::outside::{INVOKED, LEASE_MS, action, register_action};
use crate::random::Random;
use flotilla_engine::ids::{Namespace, OutcomeName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::{
    Actor, Body, CompleteTask, NodeId, Process, ProcessKind, RegisterWorker, TaskToken, WorkerType,
};
use flotilla_leader::{Poller, WorkerKey};
use flotilla_worker::Ledger;
use futures::stream::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How many tasks a worker works on at the same time.
const SLOTS: u32 = 3;

/// The worker of a node.
pub(super) struct MemberWorker {
    gateway: Arc<Gateway>,
    network: Network,
    random: Random,
    incarnation: u64,
    registration: Body,
    ledger: Ledger<TaskToken, ()>,
    /// The tasks in progress; each ends with its token.
    jobs: JoinSet<TaskToken>,
}

/// The entry of a member's worker in the registry.
pub(crate) fn registration(seed: u64, member: Member) -> Body {
    Body::RegisterWorker(Box::new(RegisterWorker {
        worker_id: worker_id(member.host),
        incarnation: incarnation(&mut random_of(seed, member)),
        kind: WorkerType::Action,
        max_concurrency: SLOTS,
        processes: vec![Process {
            name: INVOKED.to_owned(),
            kind: ProcessKind::Action,
        }],
        labels: BTreeMap::new(),
        metadata: None,
        machine_id: None,
        node: Some(NodeId(member.host)),
    }))
}

/// The random sequence of a member's worker.
fn random_of(seed: u64, member: Member) -> Random {
    Random::of(seed, &format!("worker of {member}"))
}

/// The number of the worker's process: the first number of its sequence.
fn incarnation(random: &mut Random) -> u64 {
    random.draw()
}

fn worker_id(host: Host) -> WorkerId {
    WorkerId::new(format!("flo-node-{host}")).expect("a valid id")
}

impl MemberWorker {
    /// A worker that is not registered yet.
    pub(super) fn new(gateway: Arc<Gateway>, network: Network, seed: u64) -> Self {
        let mut random = random_of(seed, gateway.member);
        Self {
            incarnation: incarnation(&mut random),
            registration: registration(seed, gateway.member),
            gateway,
            network,
            random,
            ledger: Ledger::new(SLOTS as usize),
            jobs: JoinSet::new(),
        }
    }

    /// Registers, and works as long as the process runs.
    pub(super) async fn run(mut self) {
        // Only clients register actions.
        self.insist(register_action(INVOKED), Actor::Anonymous)
            .await;
        self.insist(self.registration.clone(), Actor::System).await;
        loop {
            pause(&mut self.random).await;
            if let Some(link) = self.connect().await {
                self.ledger.open();
                self.work(link).await;
            }
        }
    }

    /// Submits a command until it is carried out.
    async fn insist(&mut self, body: Body, actor: Actor) {
        while !matches!(
            submit(&self.gateway, &body, actor.clone()).await,
            Submitted::Answered(Ok(_))
        ) {
            pause(&mut self.random).await;
        }
    }

    /// Opens a stream to the leader that this node knows, if it knows one.
    async fn connect(&self) -> Option<Link> {
        let replica = &self.gateway.replica;
        let leader = replica.leadership().borrow().leader.clone()?.node_id;
        let mut call = MemberCall::from(self.gateway.member);
        replica.host_call_sender(leader).state(&mut call.metadata);
        let first = [ToLeader::Call(call), ToLeader::Hello(self.poller())];
        let route = Route {
            from: self.gateway.member.host,
            to: leader.0,
        };
        Link::open(&self.network, route, &first, serve_member).await
    }

    fn poller(&self) -> Poller {
        Poller {
            key: WorkerKey {
                namespace: Namespace::default_namespace(),
                worker: worker_id(self.gateway.member.host),
            },
            incarnation: self.incarnation,
            actions: BTreeSet::from([action(INVOKED)]),
            held: self.ledger.held().keys().copied().collect(),
        }
    }

    /// Works until the stream ends.
    async fn work(&mut self, mut link: Link) {
        loop {
            if let Some(total) = self.ledger.offer(SLOTS as usize) {
                // If the stream has ended, reading the next message shows it.
                let _ = link.outgoing.send(ToLeader::Slots(total)).await;
            }
            tokio::select! {
                message = link.incoming.next() => match message {
                    Some(Ok(FromLeader::Task(assignment))) => self.begin(assignment.token),
                    Some(Ok(FromLeader::NotLeader(_)) | Err(_)) | None => return,
                },
                Some(job) = self.jobs.join_next() => {
                    self.ledger.close(&job.expect("a job does not panic"));
                }
            }
        }
    }

    /// Begins a task, unless it arrived before: works for a while and reports.
    fn begin(&mut self, token: TaskToken) {
        if !self.ledger.receive(token, ()) {
            return;
        }
        let member = self.gateway.member;
        self.gateway.record.member_began(member, token);
        let gateway = Arc::clone(&self.gateway);
        let mut random = Random::new(self.random.draw());
        self.jobs.spawn(async move {
            pause(&mut random).await;
            // Once the lease has ended, another worker may have the task.
            let reporting = complete(&gateway, token, &mut random);
            let _ = timeout(Duration::from_millis(LEASE_MS), reporting).await;
            token
        });
    }
}

/// Completes a task. The token makes a retry safe.
async fn complete(gateway: &Gateway, token: TaskToken, random: &mut Random) {
    let body = Body::CompleteTask(CompleteTask {
        token,
        outcome: OutcomeName::new("success").expect("a valid outcome"),
        output: Json::string(&gateway.member.to_string()),
        not_before: None,
        state_patch: None,
        usage: None,
    });
    loop {
        match submit(gateway, &body, Actor::System).await {
            Submitted::Answered(Ok(_)) => {
                return gateway.record.member_completed(gateway.member, token);
            }
            Submitted::Answered(Err(_)) => return,
            Submitted::NotDone | Submitted::Unknown => pause(random).await,
        }
    }
}

/// Submits a command through the worker's own node.
async fn submit(gateway: &Gateway, body: &Body, actor: Actor) -> Submitted {
    let command = body.clone().into_command(Namespace::default_namespace());
    gateway.submit(command.by(actor)).await
}

async fn pause(random: &mut Random) {
    sleep(Duration::from_millis(random.within(5..50))).await;
}
