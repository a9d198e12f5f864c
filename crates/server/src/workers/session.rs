//! One worker's stream at the leader (A22).

use super::assignment;
use super::handshake::{Handshake, bounded};
use super::outbox::{Outbox, ReportResult};
use super::reports;
use crate::access::CallContext;
use crate::errors::{Refusal, ServerCode};
use crate::limits::{
    HELLO_DEADLINE, OUTGOING_BYTES_MAX, OUTGOING_MESSAGES_MAX, REPORTS_BATCH_MAX,
    REPORTS_IN_FLIGHT_MAX, TASKS_BATCH_BYTES, TASKS_BATCH_MAX, TASKS_MEMORY_BYTES,
};
use crate::receiving::{ArrivedMessages, MessageMemory};
use crate::sending::{Counted, CountedStream, ResponseMemory, Unsent};
use crate::watch::cut_off;
use flotilla_api::v1;
use flotilla_engine::Assignment;
use flotilla_engine::ids::Namespace;
use flotilla_leader::channel::{Bounds, Sender, channel};
use flotilla_leader::{Hub, LeasedTask, PollClosed, Session, ToWorker};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use prost::Message as _;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::timeout;
use tonic::{Status, Streaming};
use v1::server_message::Message as Outbound;
use v1::worker_message::Message as Inbound;

/// The messages to the transport of a worker's stream.
pub(crate) type Outgoing = CountedStream<Result<v1::ServerMessage, Status>>;

/// The receiving half of a worker's stream.
pub(super) struct Incoming {
    /// Yields an empty message for each that has arrived.
    pub(super) messages: Streaming<v1::WorkerMessage>,
    pub(super) arrived: ArrivedMessages,
}

impl Incoming {
    /// The next message and its memory; `None` at the end. Cancel-safe.
    async fn next(&mut self) -> Result<Option<(v1::WorkerMessage, MessageMemory)>, Status> {
        match self.messages.message().await? {
            Some(_) => self.arrived.take().map(Some),
            None => Ok(None),
        }
    }
}

/// The two ends of a stream and its context.
pub(super) struct Connection {
    context: CallContext,
    hub: Arc<Hub>,
    incoming: Incoming,
    outgoing: Sender<Counted<Result<v1::ServerMessage, Status>>>,
    responses: ResponseMemory,
}

/// A stream whose worker is known and has an open poll.
struct WorkerStream<'s> {
    connection: &'s mut Connection,
    session: Session,
    outbox: Outbox,
    /// A message of the session that waits for memory.
    next: Option<ToWorker>,
    /// The wait for the memory of the next tasks. It keeps its place while the stream does other things.
    reserving: Option<BoxFuture<'static, Unsent>>,
}

/// A report and the number of its response.
type NumberedReport = (u64, Inbound);

impl From<PollClosed> for Refusal {
    fn from(closed: PollClosed) -> Self {
        let (reason, hint) = match closed {
            PollClosed::NotLeading => return Self::not_leader(),
            PollClosed::Replaced => (
                ServerCode::PollReplaced,
                "give each process its own --worker-id",
            ),
            PollClosed::Lost => (
                ServerCode::PollLost,
                "reconnect and name the held tasks: the others are redelivered",
            ),
        };
        Self::new(reason, closed.to_string()).with_hint(hint)
    }
}

impl Connection {
    /// A connection over the worker's end of a stream, and the messages to the worker.
    pub(super) fn new(
        context: CallContext,
        hub: Arc<Hub>,
        incoming: Incoming,
        responses: ResponseMemory,
    ) -> (Self, Outgoing) {
        let (outgoing, sent) = channel(Bounds {
            messages_max: OUTGOING_MESSAGES_MAX,
            bytes_max: OUTGOING_BYTES_MAX,
        });
        let messages = responses.stream(sent);
        let connection = Self {
            context,
            hub,
            incoming,
            outgoing,
            responses,
        };
        (connection, messages)
    }

    /// Serves the stream until the worker ends it, its poll is closed, or the node stops or is cut
    /// off.
    pub(super) async fn serve(mut self) {
        let context = self.context.clone();
        // A node that stops also closes its polls: the worker learns the cause, not the consequence.
        let ended = tokio::select! {
            biased;
            refusal = cut_off(&context) => Err(refusal.into()),
            ended = self.talk() => ended,
        };
        if let Err(status) = ended {
            // A worker that is gone, or does not read, gets no message: its stream just ends.
            let message = Counted::small(Err(status));
            let _ = self.outgoing.try_send(message, 0);
        }
    }

    async fn talk(&mut self) -> Result<(), Status> {
        let Some((hello, memory)) = first_message(self.incoming.next()).await? else {
            return Ok(());
        };
        let handshake = Handshake::new(hello)?;
        let namespace = handshake.namespace();
        let permit = self.context.memory.worker_stream_permits.acquire(namespace);
        let _permit = permit.ok_or_else(|| too_many_streams(namespace))?;
        let outgoing = self.outgoing.clone();
        let responses = self.responses.clone();
        let outbox = Outbox::new(outgoing, responses, handshake.supports_batches());
        let session = handshake.open(&self.context, &self.hub)?;
        // The session keeps only tokens of tasks that are leased to the worker, so the memory of the hello can go.
        drop(memory);
        let mut stream = WorkerStream {
            connection: self,
            session,
            outbox,
            next: None,
            reserving: None,
        };
        stream.exchange().await
    }
}

fn too_many_streams(namespace: &Namespace) -> Refusal {
    let text = format!(
        "expected fewer open worker streams, but namespace `{namespace}` has as many as the leader allows it"
    );
    Refusal::overloaded(text)
        .with_hint("run fewer workers with a higher concurrency, or give the nodes more memory")
}

/// The hello, if that is the first message, and its memory; `None` if the worker disconnected without one.
async fn first_message<Memory>(
    first: impl Future<Output = Result<Option<(v1::WorkerMessage, Memory)>, Status>>,
) -> Result<Option<(v1::WorkerHello, Memory)>, Status> {
    let Ok(first) = timeout(HELLO_DEADLINE, first).await else {
        let seconds = HELLO_DEADLINE.as_secs();
        let message = format!("expected a `hello` within {seconds} s, but none came");
        return Err(Refusal::new(ServerCode::HelloTimeout, message).into());
    };
    // The error may say why the node ended the stream. A worker that is gone does not get it.
    let Some((first, memory)) = first? else {
        return Ok(None);
    };
    match first.message {
        Some(Inbound::Hello(hello)) => Ok(Some((hello, memory))),
        _ => Err(Refusal::invalid(
            "hello",
            "expected the first message to be `hello`, but it is not",
        )
        .into()),
    }
}

/// Waits for the memory of the next tasks. Cancel-safe: `reserving` keeps the place among those that wait.
async fn reserve_tasks(
    reserving: &mut Option<BoxFuture<'static, Unsent>>,
    memory: &ResponseMemory,
) -> Unsent {
    let waiting = reserving.get_or_insert_with(|| {
        let memory = memory.clone();
        Box::pin(async move { memory.reserve_message(TASKS_MEMORY_BYTES).await })
    });
    let reserved = waiting.await;
    *reserving = None;
    reserved
}

impl WorkerStream<'_> {
    async fn exchange(&mut self) -> Result<(), Status> {
        self.accept_hello().await?;
        let mut reports = FuturesUnordered::new();
        let mut closed = pin!(self.session.closed());
        loop {
            self.count_slots()?;
            // Nothing here waits for the worker to read, except its next tasks.
            let (has_messages, takes_tasks) = (!self.outbox.is_empty(), !self.outbox.is_full());
            let has_tasks = self.session.has_leased() || self.next.is_some();
            tokio::select! {
                sent = self.outbox.send_next(), if has_messages => sent?,
                // Before their inputs are read.
                memory = reserve_tasks(&mut self.reserving, &self.connection.responses), if takes_tasks && has_tasks => {
                    self.deliver(memory)?;
                }
                () = &mut closed, if !takes_tasks || has_tasks => {
                    return Err(Refusal::from(self.session.why_closed()).into());
                }
                message = self.session.next(), if takes_tasks && !has_tasks => match message {
                    Some(message) => self.next = Some(message),
                    None => return Err(Refusal::from(self.session.why_closed()).into()),
                },
                Some(result) = reports.next() => {
                    self.outbox.add_result(result).map_err(Refusal::from)?;
                    while let Some(Some(next)) = reports.next().now_or_never() {
                        self.outbox.add_result(next).map_err(Refusal::from)?;
                    }
                }
                inbound = self.connection.incoming.next(), if reports.len() < REPORTS_IN_FLIGHT_MAX => {
                    let Some((inbound, memory)) = inbound? else { return Ok(()) };
                    let inbound = self.receive(inbound)?;
                    let parts = memory.into_parts(inbound.len());
                    let inbound = inbound.into_iter().zip(parts);
                    reports.extend(inbound.map(|(report, memory)| self.submit_report(report, memory)));
                }
            }
        }
    }

    /// Answers the hello.
    async fn accept_hello(&mut self) -> Result<(), Refusal> {
        let status = if self.session.is_draining() {
            v1::WorkerStatus::Draining
        } else {
            v1::WorkerStatus::Active
        };
        let status = status.into();
        let hello_ok = Outbound::HelloOk(v1::HelloOk {
            status,
            supports_batches: true,
        });
        self.outbox.add(hello_ok);
        self.outbox.send_next().await
    }

    /// Counts the worker's slots, once it knows of all tasks that are leased to it.
    fn count_slots(&mut self) -> Result<(), Refusal> {
        if !self.session.has_leased() {
            self.session.next_leased()?;
        }
        Ok(())
    }

    /// Adds what the worker must know next to the outbox, within the memory that is reserved for it.
    fn deliver(&mut self, mut memory: Unsent) -> Result<(), Refusal> {
        self.redeliver(&mut memory)?;
        if !self.outbox.is_full()
            && let Some(next) = self.next.take()
        {
            self.deliver_entry(next, &mut memory);
        }
        Ok(())
    }

    /// Delivers the leased tasks that the worker does not hold, and names those that are cancelled.
    fn redeliver(&mut self, memory: &mut Unsent) -> Result<(), Refusal> {
        while !self.outbox.is_full()
            && let Some(LeasedTask { missing, cancelled }) = self.session.next_leased()?
        {
            if let Some((task, input)) = missing {
                let task = assignment::to_wire(&self.connection.context, task, input);
                self.outbox.add_tasks(vec![task], memory);
            }
            if let Some(revocation) = cancelled {
                self.outbox.add(assignment::cancelled(revocation));
            }
        }
        Ok(())
    }

    /// Adds an entry's message for the worker to the outbox, along with others that are ready: tasks
    /// that come together travel together.
    fn deliver_entry(&mut self, first: ToWorker, memory: &mut Unsent) {
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                ToWorker::Task(assignment) => {
                    if let Some(task) = self.read(*assignment) {
                        bytes += task.encoded_len();
                        tasks.push(task);
                    }
                }
                ToWorker::Revoked(revocation) => {
                    self.outbox.add_tasks(std::mem::take(&mut tasks), memory);
                    self.outbox.add(assignment::cancelled(revocation));
                }
                ToWorker::Draining => {
                    self.outbox.add_tasks(std::mem::take(&mut tasks), memory);
                    self.outbox.add(Outbound::Draining(v1::Draining {}));
                }
            }
            let is_full = tasks.len() == TASKS_BATCH_MAX || bytes >= TASKS_BATCH_BYTES;
            next = if is_full {
                None
            } else {
                self.session.next_ready()
            };
        }
        self.outbox.add_tasks(tasks, memory);
    }

    fn read(&self, assignment: Assignment) -> Option<v1::TaskAssignment> {
        let task_id = assignment.token.task_id();
        match assignment::read(&self.connection.context, assignment) {
            Ok(task) => Some(task),
            // The lease stands: the task is redelivered when the worker polls again, or its lease
            // ends.
            Err(refusal) => {
                tracing::warn!(task = %task_id, %refusal, "a task was not delivered");
                self.session.discount_task();
                None
            }
        }
    }

    /// Handles a message and returns the reports in it, which need a response.
    fn receive(&mut self, inbound: v1::WorkerMessage) -> Result<Vec<NumberedReport>, Refusal> {
        match inbound.message {
            Some(Inbound::Slots(slots)) => {
                self.session.set_total(slots.max_tasks_total);
                Ok(Vec::new())
            }
            Some(Inbound::Completions(v1::TaskCompletions { completions })) => {
                bounded("completions", completions.len(), REPORTS_BATCH_MAX)?;
                let last = inbound.sequence.checked_add(completions.len() as u64);
                let Some(last) = last else {
                    return Err(Refusal::invalid(
                        "sequence",
                        "expected a number for each completion, but they exceed the highest",
                    ));
                };
                let completions = completions.into_iter().map(Inbound::Completion);
                Ok((inbound.sequence..last).zip(completions).collect())
            }
            Some(Inbound::Hello(_)) | None => Err(Refusal::invalid(
                "message",
                "expected a report or slots, but the message is empty or a second hello",
            )),
            Some(report) => Ok(vec![(inbound.sequence, report)]),
        }
    }

    /// Submits a report, which keeps its `memory` until it has a result.
    fn submit_report(
        &self,
        report: NumberedReport,
        memory: MessageMemory,
    ) -> impl Future<Output = ReportResult> + use<> {
        let context = self.connection.context.clone();
        let poller = self.session.poller();
        let (key, incarnation) = (poller.key.clone(), poller.incarnation);
        let (sequence, inbound) = report;
        async move {
            let result = reports::submit_report(context, key, incarnation, inbound).await;
            let result = v1::MessageResult {
                sequence,
                result: Some(result),
            };
            ReportResult::new(result, memory)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{pending, ready};
    use tonic::Code;
    use tonic_types::StatusExt;

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_a_hello_is_ended_in_time() {
        let refusal = first_message::<()>(pending()).await.unwrap_err();
        assert_eq!(refusal.code(), Code::DeadlineExceeded, "{refusal}");
        let info = refusal.get_details_error_info().unwrap();
        assert_eq!(info.reason, "hello_timeout");
        let nothing = first_message::<()>(ready(Ok(None))).await;
        assert_eq!(nothing.unwrap(), None);
    }

    #[tokio::test]
    async fn a_stream_begins_with_a_hello_and_nothing_else() {
        let slots = v1::WorkerMessage {
            sequence: 1,
            message: Some(Inbound::Slots(v1::WorkerSlots { max_tasks_total: 1 })),
        };
        let refusal = first_message(ready(Ok(Some((slots, ()))))).await;
        assert_eq!(refusal.unwrap_err().code(), Code::InvalidArgument);
    }
}
