//! What waits to be sent on a worker's stream (A22).
//!
//! A worker may read slowly, or not at all. Its session must not wait for it: it handles the
//! worker's reports and touches meanwhile, so that no lease ends because of it. So messages wait
//! here, and the session takes no more tasks until they are sent. The results of reports cannot
//! wait for the session, so they have their own bound. Tasks count against the memory of responses.

use crate::errors::Refusal;
use crate::limits::{REPORTS_BATCH_MAX, RESULTS_WAITING_BYTES_MAX};
use crate::memory::Reservation;
use crate::receiving::MessageMemory;
use crate::sending::{Counted, ResponseMemory, Unsent};
use flotilla_api::v1;
use flotilla_leader::PollClosed;
use flotilla_leader::channel::{NotSent, Sender};
use prost::Message as _;
use std::collections::VecDeque;
use tonic::Status;
use v1::server_message::Message as Outbound;

/// What waits to be sent on a worker's stream, in the form that the worker supports: one item per
/// message, or several batched.
pub(super) struct Outbox {
    outgoing: Sender<Counted<Result<v1::ServerMessage, Status>>>,
    responses: ResponseMemory,
    supports_batches: bool,
    messages: VecDeque<Counted<v1::ServerMessage>>,
    results: VecDeque<ReportResult>,
    /// The encoded size of the results.
    results_bytes: usize,
}

/// The result of a report, in a part of the report's memory.
pub(super) struct ReportResult {
    result: v1::MessageResult,
    memory: Reservation,
}

impl ReportResult {
    /// A result that keeps what it needs of the `memory` of its report.
    pub(super) fn new(result: v1::MessageResult, memory: MessageMemory) -> Self {
        let memory = memory.keep(result.encoded_len());
        Self { result, memory }
    }

    fn bytes(&self) -> usize {
        self.result.encoded_len()
    }
}

impl Outbox {
    /// An empty outbox over the transport of a stream.
    pub(super) fn new(
        outgoing: Sender<Counted<Result<v1::ServerMessage, Status>>>,
        responses: ResponseMemory,
        supports_batches: bool,
    ) -> Self {
        Self {
            outgoing,
            responses,
            supports_batches,
            messages: VecDeque::new(),
            results: VecDeque::new(),
            results_bytes: 0,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.results.is_empty()
    }

    /// Whether anything other than results waits: then the worker gets no more tasks.
    pub(super) fn is_full(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Adds a message that is too small to count.
    pub(super) fn add(&mut self, message: Outbound) {
        let message = Some(message);
        let message = v1::ServerMessage { message };
        self.messages.push_back(Counted::small(message));
    }

    /// Adds tasks, and takes what they need from the memory that is reserved for them.
    pub(super) fn add_tasks(&mut self, tasks: Vec<v1::TaskAssignment>, memory: &mut Unsent) {
        if self.supports_batches {
            if !tasks.is_empty() {
                let tasks = v1::TaskAssignments { tasks };
                self.add_counted(Outbound::Tasks(tasks), memory);
            }
            return;
        }
        for task in tasks {
            self.add_counted(Outbound::Task(task), memory);
        }
    }

    fn add_counted(&mut self, message: Outbound, memory: &mut Unsent) {
        let message = v1::ServerMessage {
            message: Some(message),
        };
        let memory = memory.split(message.encoded_len());
        self.messages.push_back(Counted::new(message, memory));
    }

    /// Adds the result of a report.
    ///
    /// # Errors
    /// [`PollClosed::Lost`] if the worker has left too many unread.
    pub(super) fn add_result(&mut self, result: ReportResult) -> Result<(), PollClosed> {
        self.results_bytes += result.bytes();
        self.results.push_back(result);
        if self.results_bytes > RESULTS_WAITING_BYTES_MAX {
            return Err(PollClosed::Lost);
        }
        Ok(())
    }

    /// Sends the next message once the transport has room for it: results first, because they are
    /// small and free the worker's slots. Cancel-safe. A refusal because the worker is gone reaches
    /// no caller.
    pub(super) async fn send_next(&mut self) -> Result<(), Refusal> {
        let batch_max = if self.supports_batches {
            REPORTS_BATCH_MAX
        } else {
            1
        };
        let count = self.results.len().min(batch_max);
        let results = self.results.iter().take(count);
        let bytes = match self.messages.front() {
            Some(message) if count == 0 => message.message.encoded_len(),
            Some(_) | None => results.map(ReportResult::bytes).sum(),
        };
        let room = self.outgoing.reserve(bytes).await.map_err(|NotSent| {
            Refusal::unavailable("expected the worker to be connected, but it is gone")
        })?;
        if count > 0 {
            self.results_bytes -= bytes;
            let results: Vec<_> = self.results.drain(..count).collect();
            room.send(self.results_message(results).map(Ok));
        } else if let Some(message) = self.messages.pop_front() {
            room.send(message.map(Ok));
        }
        Ok(())
    }

    fn results_message(&self, results: Vec<ReportResult>) -> Counted<v1::ServerMessage> {
        let (mut results, memory): (Vec<_>, Vec<_>) = results
            .into_iter()
            .map(|ReportResult { result, memory }| (result, memory))
            .unzip();
        let message = if self.supports_batches {
            Some(Outbound::Results(v1::MessageResults { results }))
        } else {
            results.pop().map(Outbound::Result)
        };
        let message = v1::ServerMessage { message };
        let mut merged: Vec<Reservation> = Vec::new();
        for memory in memory {
            match merged
                .iter_mut()
                .find(|merged| merged.is_of_same_pool(&memory))
            {
                Some(merged) => merged.merge(memory),
                None => merged.push(memory),
            }
        }
        let merged = merged.into_iter();
        let memory = merged.map(|memory| self.responses.unsent(memory));
        Counted {
            message,
            memory: memory.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryPool;
    use crate::receiving::RequestMemory;
    use crate::sending::Responses;
    use flotilla_leader::channel::{Bounds, Receiver, channel};
    use flotilla_replica::Caller;
    use futures::FutureExt;

    type Sent = Receiver<Counted<Result<v1::ServerMessage, Status>>>;

    /// The memory of what is sent, and of reports.
    fn pool() -> MemoryPool {
        MemoryPool::new(2 << 20)
    }

    /// An outbox whose messages have memory of `pool`.
    fn outbox(supports_batches: bool, pool: &MemoryPool) -> (Outbox, Sent) {
        let responses = Responses::new(pool.clone(), pool.clone());
        let request = RequestMemory::reserve(pool).expect("it is free");
        request.release();
        let responses = responses.memory_for(Caller::default(), request);
        let (outgoing, sent) = channel(Bounds {
            messages_max: 2,
            bytes_max: 1 << 20,
        });
        (Outbox::new(outgoing, responses, supports_batches), sent)
    }

    /// The result of a report that has 50 bytes of `reports`.
    fn result(sequence: u64, reports: &MemoryPool) -> ReportResult {
        let result = v1::MessageResult {
            sequence,
            result: None,
        };
        let report = reports.try_reserve(50).expect("it is free");
        ReportResult::new(result, MessageMemory::from(report))
    }

    /// The next message that was sent, in short form.
    fn sent(receiver: &mut Sent) -> String {
        let sent = receiver.try_recv().map(|sent| sent.message.unwrap());
        match sent.and_then(|sent| sent.message) {
            None => "nothing".to_owned(),
            Some(Outbound::Tasks(batch)) => format!("{} tasks", batch.tasks.len()),
            Some(Outbound::Results(batch)) => format!("{} results", batch.results.len()),
            Some(Outbound::Result(result)) => format!("result {}", result.sequence),
            Some(other) => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn results_pass_tasks_that_wait_for_a_slow_reader() {
        let pool = pool();
        let (mut outbox, mut receiver) = outbox(true, &pool);
        let worker = outbox.responses.clone();
        for _ in 0..3 {
            let mut memory = worker.reserve_message(100).await;
            let task = v1::TaskAssignment {
                task_token: "token".to_owned(),
                ..v1::TaskAssignment::default()
            };
            outbox.add_tasks(vec![task], &mut memory);
        }
        assert!((3..300).contains(&pool.bytes_reserved()), "what they need");
        outbox.send_next().await.unwrap();
        outbox.send_next().await.unwrap();
        assert!(outbox.send_next().now_or_never().is_none(), "it is full");
        assert!(outbox.is_full());
        outbox.add_result(result(1, &pool)).unwrap();
        outbox.add_result(result(2, &pool)).unwrap();
        assert_eq!(sent(&mut receiver), "1 tasks");
        outbox.send_next().await.unwrap();
        assert_eq!(sent(&mut receiver), "1 tasks");
        assert_eq!(sent(&mut receiver), "2 results");
        outbox.send_next().await.unwrap();
        assert_eq!(sent(&mut receiver), "1 tasks");
        assert!(outbox.is_empty() && outbox.results_bytes == 0);
        assert_eq!(pool.bytes_reserved(), 0);
    }

    #[tokio::test]
    async fn a_worker_without_batches_gets_one_item_per_message() {
        let pool = pool();
        let (mut outbox, mut receiver) = outbox(false, &pool);
        outbox.add_result(result(1, &pool)).unwrap();
        outbox.add_result(result(2, &pool)).unwrap();
        outbox.send_next().await.unwrap();
        outbox.send_next().await.unwrap();
        assert_eq!(sent(&mut receiver), "result 1");
        assert_eq!(sent(&mut receiver), "result 2");
        assert!(outbox.is_empty());
    }

    #[tokio::test]
    async fn a_result_keeps_what_it_needs_of_its_reports_memory_until_it_is_sent() {
        let reports = MemoryPool::new(100);
        let (mut outbox, mut receiver) = outbox(true, &pool());
        for sequence in [1, 2] {
            outbox.add_result(result(sequence, &reports)).unwrap();
        }
        assert_eq!(reports.bytes_reserved(), 4);
        outbox.send_next().await.unwrap();
        assert_eq!(reports.bytes_reserved(), 4);
        assert_eq!(sent(&mut receiver), "2 results");
        assert_eq!(reports.bytes_reserved(), 0);
    }

    #[test]
    fn results_that_are_never_read_end_the_stream() {
        let pool = pool();
        let (mut outbox, _receiver) = outbox(true, &pool);
        let added = (0..).find_map(|sequence| outbox.add_result(result(sequence, &pool)).err());
        assert_eq!(added, Some(PollClosed::Lost));
        assert!(outbox.results_bytes <= RESULTS_WAITING_BYTES_MAX + 64);
    }
}
