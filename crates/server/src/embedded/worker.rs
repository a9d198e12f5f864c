//! One node's worker in one namespace.

use super::Actionset;
use super::link::Link;
use super::runner::{Runner, concurrency};
use crate::context::Context;
use crate::errors::Refusal;
use flotilla_api::v1;
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::tables::{Process, ProcessKind, WorkerKind};
use flotilla_engine::{Body, Command, RegisterWorker, TaskToken};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use v1::server_message::Message;

/// How long a command of the worker may take before it is sent again.
const COMMAND_DEADLINE: Duration = Duration::from_secs(10);
/// How long the worker waits before it opens its stream again.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// How often it says that it lives (A20).
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// What the worker has in hand: tasks that run, and reports that are under way.
struct Worker {
    context: Arc<Context>,
    runner: Arc<Runner>,
    namespace: Namespace,
    id: WorkerId,
    incarnation: u64,
    held: BTreeSet<TaskToken>,
    running: JoinSet<TaskToken>,
}

/// Why a stream ended.
enum Ended {
    /// The worker's actions changed, or the stream broke: open it again.
    Again,
    /// The node stops.
    Stopped,
}

/// Works until the node stops or the namespace's supervisor is gone.
pub(super) async fn run(
    context: Arc<Context>,
    runner: Arc<Runner>,
    namespace: Namespace,
    mut actions: watch::Receiver<Actionset>,
) {
    let id = format!("flo-node-{}", context.node.0);
    let id = WorkerId::new(id).expect("a short text of letters, digits and dashes");
    let mut worker = Worker {
        context,
        runner,
        namespace,
        id,
        incarnation: rand::random(),
        held: BTreeSet::new(),
        running: JoinSet::new(),
    };
    loop {
        let known = actions.borrow_and_update().clone();
        match worker.work(&known, &mut actions).await {
            Ok(Ended::Stopped) => return,
            Ok(Ended::Again) => {}
            Err(refusal) => tracing::debug!(%refusal, "the embedded worker has no stream"),
        }
        tokio::select! {
            () = sleep(REOPEN_DELAY) => {}
            () = worker.context.shutdown.cancelled() => return,
        }
    }
}

impl Worker {
    /// Registers, opens a stream and serves it to its end.
    async fn work(
        &mut self,
        known: &Actionset,
        actions: &mut watch::Receiver<Actionset>,
    ) -> Result<Ended, Refusal> {
        self.register(known).await?;
        let hello = v1::WorkerHello {
            namespace: self.namespace.to_string(),
            worker_id: self.id.to_string(),
            incarnation: self.incarnation,
            actions: known.iter().map(ToString::to_string).collect(),
            held_task_tokens: self.held.iter().map(ToString::to_string).collect(),
        };
        let link = Link::open(&self.context, hello).await;
        let mut link = link.map_err(|status| Refusal::unavailable(status.message()))?;
        let mut heartbeat = interval(HEARTBEAT_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_news = true;
        loop {
            if has_news
                && link
                    .offer(concurrency().saturating_sub(self.held.len()))
                    .await
                    .is_err()
            {
                return Ok(Ended::Again);
            }
            has_news = false;
            tokio::select! {
                heard = link.incoming.message() => match heard {
                    Ok(Some(v1::ServerMessage { message: Some(Message::Task(task)) })) => {
                        link.count_task();
                        self.begin(task);
                        has_news = true;
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return Ok(Ended::Again),
                },
                Some(ended) = self.running.join_next() => {
                    if let Ok(token) = ended {
                        self.held.remove(&token);
                    }
                    has_news = true;
                }
                _ = heartbeat.tick() => if link.beat(self.held.len()).await.is_err() {
                    return Ok(Ended::Again);
                },
                changed = actions.changed() => return Ok(match changed {
                    Ok(()) => Ended::Again,
                    Err(_) => Ended::Stopped,
                }),
                () = self.context.shutdown.cancelled() => return Ok(Ended::Stopped),
            }
        }
    }

    async fn register(&self, known: &Actionset) -> Result<(), Refusal> {
        let process = |name: &flotilla_engine::ids::ActionName| Process {
            name: name.to_string(),
            kind: ProcessKind::Action,
        };
        let body = Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: self.id.clone(),
            incarnation: self.incarnation,
            kind: WorkerKind::Action,
            max_concurrency: u32::try_from(concurrency()).unwrap_or(u32::MAX),
            processes: known.iter().map(process).collect(),
            labels: BTreeMap::new(),
            metadata: None,
            machine_id: None,
            node: Some(self.context.node),
        }));
        let command = Command::new(self.namespace.clone(), body);
        let deadline = Instant::now() + COMMAND_DEADLINE;
        self.context
            .gateway
            .submit(command, deadline)
            .await
            .map(drop)
    }

    /// Runs a task, unless it came twice.
    fn begin(&mut self, task: v1::TaskAssignment) {
        let Ok(token) = task.task_token.parse::<TaskToken>() else {
            return;
        };
        if !self.held.insert(token) {
            return;
        }
        let (context, runner) = (self.context.clone(), self.runner.clone());
        let namespace = self.namespace.clone();
        self.running.spawn(async move {
            let body = runner.run(&namespace, (token, task)).await;
            report(&context, Command::new(namespace, body)).await;
            token
        });
    }
}

/// Reports until the cluster has answered: the token makes that safe (design rule 9).
async fn report(context: &Context, command: Command) {
    loop {
        let deadline = Instant::now() + COMMAND_DEADLINE;
        match context.gateway.submit(command.clone(), deadline).await {
            Ok(_) => return,
            Err(refusal) if refusal.may_succeed_later() => sleep(REOPEN_DELAY).await,
            Err(refusal) => {
                tracing::info!(%refusal, "a report of an embedded worker came too late");
                return;
            }
        }
    }
}
