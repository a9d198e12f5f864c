//! One worker's stream at the leader (A22).

use super::assignment::message;
use super::hub::Hub;
use super::poll::{Request, ToWorker, WorkerKey};
use super::reports;
use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Assignment, Rejection, TaskToken, view};
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use v1::server_message::Message as Say;
use v1::worker_message::Message as Heard;

/// Reports of one worker that may be under way at once; further ones wait in the stream.
const REPORTS_UNDER_WAY_MAX: usize = 1_024;

/// Who opened a stream, as its hello said and the registry knows.
pub(super) struct Hello {
    pub(super) request: Request,
    pub(super) incarnation: u64,
    pub(super) is_draining: bool,
    /// Tasks that are leased to the worker but that it does not hold: handed out again (A4).
    pub(super) to_hand_out: Vec<(Assignment, Json)>,
}

/// A stream's two ends and what it belongs to.
pub(super) struct Session {
    pub(super) context: Arc<Context>,
    pub(super) hub: Arc<Hub>,
    pub(super) incoming: Streaming<v1::WorkerMessage>,
    pub(super) outgoing: mpsc::Sender<Result<v1::ServerMessage, Status>>,
}

/// Checks a hello against the registry.
pub(super) async fn greet(context: &Context, hello: v1::WorkerHello) -> Result<Hello, Refusal> {
    let namespace = request::namespace(&hello.namespace)?;
    let worker = request::name(WorkerId::new(hello.worker_id))?;
    let actions: Result<Vec<ActionName>, Refusal> = hello
        .actions
        .into_iter()
        .map(|name| request::name(ActionName::new(name)))
        .collect();
    let held: BTreeSet<TaskToken> = hello
        .held_task_tokens
        .iter()
        .filter_map(|token| token.parse().ok())
        .collect();
    let key = WorkerKey { namespace, worker };
    let known = context.gateway.read_here({
        let key = key.clone();
        move |reader| registered(reader, &key, &held)
    })?;
    let Some((record, activity, to_hand_out)) = known else {
        return Err(Rejection::WorkerNotFound(key.worker).into());
    };
    if record.incarnation != hello.incarnation {
        return Err(Rejection::WorkerReplaced(key.worker).into());
    }
    let request = Request {
        key,
        actions: actions?,
        labels: record.labels,
    };
    let is_draining = activity.is_draining;
    Ok(Hello {
        request,
        incarnation: hello.incarnation,
        is_draining,
        to_hand_out,
    })
}

type Registered = (
    flotilla_engine::tables::WorkerRecord,
    flotilla_engine::tables::WorkerActivityRecord,
    Vec<(Assignment, Json)>,
);

/// What the state knows of a worker, and the tasks leased to it that are not in `held`.
fn registered(
    reader: &dyn Reader,
    key: &WorkerKey,
    held: &BTreeSet<TaskToken>,
) -> Result<Option<Registered>, StoreError> {
    let Some(view) = view::worker(reader, &key.namespace, &key.worker)? else {
        return Ok(None);
    };
    let mut to_hand_out = Vec::new();
    for task in &view.activity.leases {
        let leased = view::assignment(reader, *task)?;
        to_hand_out.extend(leased.filter(|(assignment, _)| !held.contains(&assignment.token)));
    }
    Ok(Some((view.record, view.activity, to_hand_out)))
}

impl Session {
    /// Serves the stream until the worker ends it or its poll is closed.
    pub(super) async fn serve(mut self) {
        if let Err(refusal) = self.talk().await {
            // The worker may be gone; then there is nobody to tell.
            drop(self.outgoing.send(Err(refusal.into())).await);
        }
    }

    async fn talk(&mut self) -> Result<(), Refusal> {
        let Some(hello) = self.first_message().await? else {
            return Ok(());
        };
        // The poll is opened before the leases are read, so that a task that is assigned in
        // between is either read or delivered; a worker takes one that comes twice only once.
        let (number, mut tasks) = {
            let greeted = greet(&self.context, hello.clone()).await?;
            self.hub.open(greeted.request)
        };
        let result = match greet(&self.context, hello).await {
            Ok(greeted) => self.exchange(number, greeted, &mut tasks).await,
            Err(refusal) => Err(refusal),
        };
        self.hub.close(number);
        result
    }

    /// The hello; `None` when the worker went away without a word.
    async fn first_message(&mut self) -> Result<Option<v1::WorkerHello>, Refusal> {
        match self.incoming.message().await {
            Ok(Some(v1::WorkerMessage {
                message: Some(Heard::Hello(hello)),
                ..
            })) => Ok(Some(hello)),
            Ok(Some(_)) => Err(Refusal::invalid(
                "hello",
                "expected the first message to be `hello`, but it is not",
            )),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    async fn exchange(
        &mut self,
        number: u64,
        hello: Hello,
        tasks: &mut mpsc::Receiver<ToWorker>,
    ) -> Result<(), Refusal> {
        let key = hello.request.key.clone();
        let status = if hello.is_draining {
            v1::WorkerStatus::Draining
        } else {
            v1::WorkerStatus::Active
        };
        let hello_ok = v1::HelloOk {
            status: status.into(),
        };
        self.say(v1::ServerMessage {
            message: Some(Say::HelloOk(hello_ok)),
        })
        .await;
        for (assignment, input) in hello.to_hand_out {
            let task = ToWorker::Task(Box::new(assignment), input);
            self.hub.send(&key, Some(number), task);
        }
        let mut reports = FuturesUnordered::new();
        loop {
            tokio::select! {
                delivered = tasks.recv() => match delivered {
                    Some(delivered) => self.say(message(delivered)).await,
                    None => return Err(Refusal::not_leader()),
                },
                Some(result) = reports.next() => {
                    let (sequence, result): (u64, v1::ItemResult) = result;
                    let result = v1::MessageResult { sequence, result: Some(result) };
                    self.say(v1::ServerMessage { message: Some(Say::Result(result)) }).await;
                }
                heard = self.incoming.message(), if reports.len() < REPORTS_UNDER_WAY_MAX => {
                    let Ok(Some(heard)) = heard else { return Ok(()) };
                    let sequence = heard.sequence;
                    match heard.message {
                        Some(Heard::Slots(slots)) => {
                            let set = self.hub.set_total(number, slots.tasks_total_max);
                            set.map_err(|_| Refusal::not_leader())?;
                        }
                        Some(Heard::Hello(_)) | None => return Err(Refusal::invalid(
                            "message",
                            "expected a report or slots, but the message is empty or a second hello",
                        )),
                        Some(report) => reports.push(reports::answer(
                            self.context.clone(),
                            (key.clone(), hello.incarnation),
                            (sequence, report),
                        )),
                    }
                }
                () = self.context.shutdown.cancelled() => return Err(Refusal::not_leader()),
            }
        }
    }

    /// Sends a message; a worker that is gone is noticed by its incoming side.
    async fn say(&self, message: v1::ServerMessage) {
        drop(self.outgoing.send(Ok(message)).await);
    }
}
