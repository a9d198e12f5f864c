//! The messages that a worker has to send, as pure state without I/O.
//!
//! A message that needs a response is kept until the response arrives. After a broken stream, all
//! unanswered messages are sent again on the next one, and the hello names every held task, so that
//! the cluster assigns again only what never arrived (A4).
//!
//! A message that the cluster refuses for now, because it is overloaded or has no leader, is sent
//! again later on the same stream: a new stream costs the cluster more than the message.

use super::lease::TouchOrder;
use super::report::Report;
use super::session::{NOT_LEADER, WORKER_NOT_FOUND};
use crate::backoff::Backoff;
use crate::error::{ClientError, ErrorKind};
use crate::period::millis;
use flotilla_api::v1;
use flotilla_api::v1::worker_message::Message;
use flotilla_worker::Ledger;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// The code of a touch that is refused because the task is cancelled.
const TASK_CANCELLED: &str = "task_cancelled";
/// How long a refused message waits at most, whatever the cluster requests.
const DEFERRED_MAX: Duration = Duration::from_secs(30);

/// The messages that a worker has to send, and the tasks that they are about.
#[derive(Debug)]
pub(super) struct Outbox {
    ledger: Ledger<String, HeldTask>,
    concurrency: usize,
    queue: VecDeque<Outgoing>,
    unanswered: BTreeMap<u64, Outgoing>,
    /// Messages that were refused for now, by when they are sent again, in the order of refusal.
    deferred: BTreeMap<(Instant, u64), Outgoing>,
    /// How many messages were deferred.
    deferrals: u64,
    /// The jitter of what is deferred.
    backoff: Backoff,
    /// How many reports were accepted.
    reports_accepted: u64,
}

/// A task that the worker holds, by its id in the ledger.
#[derive(Debug)]
pub(super) struct HeldTask {
    /// The token with which it was received first. Another token may name the same task later.
    token: String,
    stage: Stage,
}

/// The stage of a held task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its handler runs.
    Running,
    /// Its report was not answered.
    Reported,
}

#[derive(Debug)]
enum Outgoing {
    Report { task_id: String, report: Report },
    Touch(TouchOrder),
    Heartbeat { load: u32 },
}

/// What a response requires the worker to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The cluster permanently refuses the task's report or touch: drop the task's handler.
    GiveUp {
        /// The task's id.
        task_id: String,
        /// Why the cluster refuses it.
        error: ClientError,
    },
    /// The task is cancelled: drop its handler, and report that.
    Cancel {
        /// The task's id.
        task_id: String,
    },
    /// The stream is useless: open a new one.
    Reopen(ClientError),
}

impl Outbox {
    /// An empty outbox of a worker that runs up to `concurrency` tasks. Up to twice as many may be
    /// held: the rest wait for the response to their report.
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            ledger: Ledger::new(2 * concurrency),
            concurrency,
            queue: VecDeque::new(),
            unanswered: BTreeMap::new(),
            deferred: BTreeMap::new(),
            deferrals: 0,
            backoff: Backoff::default(),
            reports_accepted: 0,
        }
    }

    /// The held tasks and the offered slots.
    pub(super) fn ledger(&self) -> &Ledger<String, HeldTask> {
        &self.ledger
    }

    /// Starts a new stream: its first message names the held tasks, and messages not answered on
    /// the previous stream are queued again, in order.
    pub(super) fn open(&mut self, hello: v1::WorkerHello) -> v1::WorkerMessage {
        let unanswered = std::mem::take(&mut self.unanswered);
        for outgoing in unanswered.into_values().rev() {
            self.queue.push_front(outgoing);
        }
        self.queue
            .retain(|outgoing| !matches!(outgoing, Outgoing::Heartbeat { .. }));
        self.ledger.open();
        let held = self.ledger.held().values();
        let held_task_tokens = held.map(|task| task.token.clone()).collect();
        self.number(Message::Hello(v1::WorkerHello {
            held_task_tokens,
            ..hello
        }))
    }

    /// Records a received task. Returns false if it was received before.
    pub(super) fn receive(&mut self, task_id: &str, token: &str) -> bool {
        let task = HeldTask {
            token: token.to_owned(),
            stage: Stage::Running,
        };
        self.ledger.receive(task_id.to_owned(), task)
    }

    /// Records that a handler ended.
    pub(super) fn report(&mut self, task_id: String, report: Report) {
        if let Some(task) = self.ledger.note_mut(&task_id) {
            task.stage = Stage::Reported;
            self.queue.push_back(Outgoing::Report { task_id, report });
        }
    }

    /// Records a request to extend a lease.
    pub(super) fn touch(&mut self, order: TouchOrder) {
        self.queue.push_back(Outgoing::Touch(order));
    }

    /// Records that a heartbeat is due.
    pub(super) fn heartbeat(&mut self, load: usize) {
        let load = u32::try_from(load).unwrap_or(u32::MAX);
        self.queue.push_back(Outgoing::Heartbeat { load });
    }

    /// Stops offering slots.
    pub(super) fn stop_taking(&mut self) {
        self.ledger.set_taking(false);
    }

    /// Forgets a task.
    pub(super) fn forget(&mut self, task_id: &str) {
        self.ledger.close(task_id);
        self.queue
            .retain(|outgoing| !outgoing.is_report_of(task_id));
        self.deferred
            .retain(|_, outgoing| !outgoing.is_report_of(task_id));
    }

    /// How many reports the cluster has accepted since the start.
    pub(super) fn reports_accepted(&self) -> u64 {
        self.reports_accepted
    }

    /// When [`Self::queue_deferred`] has something to do.
    pub(super) fn next_deferred(&self) -> Option<Instant> {
        self.deferred.keys().next().map(|(due, _)| *due)
    }

    /// Queues the messages whose delay is over.
    pub(super) fn queue_deferred(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.deferred.first_entry()
            && first.key().0 <= now
        {
            self.queue.push_back(first.remove());
        }
    }

    /// Whether [`Self::next_message`] has one.
    pub(super) fn has_message(&self) -> bool {
        !self.queue.is_empty() || self.ledger.has_offer(self.free_slots())
    }

    /// The next message to send. Slots come after the reports that free them.
    pub(super) fn next_message(&mut self) -> Option<v1::WorkerMessage> {
        while let Some(outgoing) = self.queue.pop_front() {
            let Some(message) = outgoing.message(&self.ledger) else {
                continue;
            };
            let message = self.number(message);
            self.unanswered.insert(message.sequence, outgoing);
            return Some(message);
        }
        let max_tasks_total = self.ledger.offer(self.free_slots())?;
        Some(self.number(Message::Slots(v1::WorkerSlots { max_tasks_total })))
    }

    /// Records a response.
    pub(super) fn answer(&mut self, result: v1::MessageResult) -> Option<Order> {
        let outgoing = self.unanswered.remove(&result.sequence)?;
        let Some(item) = result.result.and_then(|result| result.error) else {
            self.finish(outgoing);
            return None;
        };
        let error = ClientError::from_item(&item);
        if is_about_stream(&error) {
            self.queue.push_back(outgoing);
            return Some(Order::Reopen(error));
        }
        if error.is_passing() {
            self.defer(outgoing, Duration::from_millis(item.retry_delay_ms));
            return None;
        }
        self.refuse(outgoing, error)
    }

    fn finish(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Report { task_id, .. } => {
                self.reports_accepted += 1;
                self.backoff.reset();
                self.ledger.close(&task_id);
            }
            // No one waits if the handler has ended meanwhile.
            Outgoing::Touch(order) => drop(order.answer.send(Ok(()))),
            Outgoing::Heartbeat { .. } => {}
        }
    }

    /// Sends a message again after the delay that the cluster requested. The jitter keeps workers
    /// that were refused together from returning together.
    fn defer(&mut self, outgoing: Outgoing, delay: Duration) {
        // The next heartbeat replaces it.
        if matches!(outgoing, Outgoing::Heartbeat { .. }) {
            return;
        }
        let due = Instant::now() + delay.min(DEFERRED_MAX) + self.backoff.next_delay();
        self.deferrals += 1;
        self.deferred.insert((due, self.deferrals), outgoing);
    }

    fn refuse(&mut self, outgoing: Outgoing, error: ClientError) -> Option<Order> {
        let is_malformed = error.kind() == ErrorKind::Usage;
        match outgoing {
            Outgoing::Report {
                task_id,
                report: Report::Completed { .. },
            } if is_malformed => {
                let report = Report::of_refusal(error.code(), error.message());
                self.queue.push_back(Outgoing::Report { task_id, report });
                None
            }
            Outgoing::Report { task_id, .. } => {
                self.forget(&task_id);
                Some(Order::GiveUp { task_id, error })
            }
            Outgoing::Touch(order) if is_malformed => {
                drop(order.answer.send(Err(error)));
                None
            }
            Outgoing::Touch(order) if error.code() == TASK_CANCELLED => {
                let task_id = order.task_id;
                Some(Order::Cancel { task_id })
            }
            Outgoing::Touch(order) => {
                let task_id = order.task_id;
                let held = self.ledger.held().get(&task_id);
                // The response to a report in flight decides about its task.
                if held.map(|task| task.stage) != Some(Stage::Running) {
                    return None;
                }
                self.forget(&task_id);
                Some(Order::GiveUp { task_id, error })
            }
            Outgoing::Heartbeat { .. } => Some(Order::Reopen(error)),
        }
    }

    /// A task takes a slot while its handler runs.
    fn free_slots(&self) -> usize {
        let held = self.ledger.held().values();
        let running = held.filter(|task| task.stage == Stage::Running).count();
        self.concurrency.saturating_sub(running)
    }

    fn number(&mut self, message: Message) -> v1::WorkerMessage {
        v1::WorkerMessage {
            sequence: self.ledger.next_sequence(),
            message: Some(message),
        }
    }
}

impl Outgoing {
    /// The message; `None` if no one waits for it: the task is no longer held, or the handler that wants its lease extended has
    /// ended.
    fn message(&self, ledger: &Ledger<String, HeldTask>) -> Option<Message> {
        let token = |task_id: &String| ledger.held().get(task_id).map(|task| &task.token);
        Some(match self {
            Self::Report { task_id, report } => report.message(token(task_id)?),
            Self::Touch(order) if order.answer.is_closed() => return None,
            Self::Touch(order) => Message::Touch(v1::TaskTouch {
                task_token: token(&order.task_id)?.clone(),
                extend_ms: millis(order.extend),
            }),
            Self::Heartbeat { load } => Message::Heartbeat(v1::WorkerLoad {
                current_load: *load,
            }),
        })
    }

    fn is_report_of(&self, task: &str) -> bool {
        matches!(self, Self::Report { task_id, .. } if task_id == task)
    }
}

/// Whether only a stream to another node, or a new registration, can give a better response.
fn is_about_stream(error: &ClientError) -> bool {
    [NOT_LEADER, WORKER_NOT_FOUND].contains(&error.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::ActionResult;
    use tokio::sync::oneshot;
    use tonic::Code;

    /// An outbox with an open stream and all slots offered.
    fn outbox(concurrency: usize) -> Outbox {
        let mut outbox = Outbox::new(concurrency);
        outbox.open(v1::WorkerHello::default());
        outbox.next_message().expect("slots");
        outbox
    }

    fn token(task_id: &str) -> String {
        format!("token of {task_id}")
    }

    fn receive(outbox: &mut Outbox, task_id: &str) -> bool {
        outbox.receive(task_id, &token(task_id))
    }

    fn success() -> Report {
        Report::of(Ok(ActionResult::success(1)), false)
    }

    /// The next message, in short form.
    fn next(outbox: &mut Outbox) -> String {
        match outbox.next_message().and_then(|message| message.message) {
            None => "nothing".to_owned(),
            Some(Message::Hello(hello)) => format!("hello {:?}", hello.held_task_tokens),
            Some(Message::Slots(slots)) => format!("slots {}", slots.max_tasks_total),
            Some(Message::Completion(completion)) => {
                format!("completion with {}", completion.task_token)
            }
            Some(Message::Acceptance(acceptance)) => {
                format!("acceptance with {}", acceptance.task_token)
            }
            Some(Message::Failure(failure)) => format!("failure with {}", failure.task_token),
            Some(Message::Touch(touch)) => format!("touch with {}", touch.task_token),
            Some(Message::Heartbeat(load)) => format!("heartbeat {}", load.current_load),
            Some(Message::Completions(batch)) => panic!("expected one, but found {batch:?}"),
        }
    }

    #[test]
    fn a_slot_is_free_as_soon_as_the_handler_ends() {
        let mut outbox = outbox(1);
        assert!(receive(&mut outbox, "t1"));
        assert_eq!(next(&mut outbox), "nothing", "the slot is taken");
        outbox.report("t1".to_owned(), success());
        assert_eq!(next(&mut outbox), "completion with token of t1");
        assert_eq!(next(&mut outbox), "slots 2");
    }

    #[test]
    fn unanswered_reports_do_not_pile_up() {
        let mut outbox = outbox(1);
        for token in ["t1", "t2"] {
            receive(&mut outbox, token);
            outbox.report(token.to_owned(), success());
        }
        assert_eq!(next(&mut outbox), "completion with token of t1");
        assert_eq!(next(&mut outbox), "completion with token of t2");
        assert_eq!(
            next(&mut outbox),
            "slots 2",
            "two came, and no more are taken"
        );
        let answer = v1::MessageResult {
            sequence: 3,
            result: None,
        };
        assert_eq!(outbox.answer(answer), None);
        assert_eq!(next(&mut outbox), "slots 3");
    }

    #[test]
    fn what_was_not_answered_is_said_again_in_order_but_for_heartbeats() {
        let mut outbox = outbox(3);
        for token in ["t1", "t2", "t3"] {
            receive(&mut outbox, token);
        }
        outbox.report("t2".to_owned(), success());
        outbox.heartbeat(2);
        while outbox.next_message().is_some() {}
        outbox.report("t1".to_owned(), success());

        let hello = outbox.open(v1::WorkerHello::default());
        let Some(Message::Hello(hello)) = hello.message else {
            panic!("expected a hello")
        };
        assert_eq!(hello.held_task_tokens, ["t1", "t2", "t3"].map(token));
        assert_eq!(next(&mut outbox), "completion with token of t2");
        assert_eq!(next(&mut outbox), "completion with token of t1");
        assert_eq!(
            next(&mut outbox),
            "slots 2",
            "none came on this stream, and one still runs"
        );
        assert_eq!(next(&mut outbox), "nothing");
    }

    fn refusal(sequence: u64, code: Code, reason: &str, retry_delay_ms: u64) -> v1::MessageResult {
        let error = v1::ItemError {
            grpc_status: code.into(),
            code: reason.to_owned(),
            retry_delay_ms,
            ..v1::ItemError::default()
        };
        let result = v1::ItemResult {
            error: Some(error),
            ..v1::ItemResult::default()
        };
        v1::MessageResult {
            sequence,
            result: Some(result),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_for_now_is_sent_again_after_the_requested_delay() {
        let mut outbox = outbox(2);
        receive(&mut outbox, "t1");
        outbox.report("t1".to_owned(), success());
        outbox.heartbeat(1);
        while outbox.next_message().is_some() {}
        let exhausted = Code::ResourceExhausted;
        assert_eq!(outbox.answer(refusal(4, exhausted, "overloaded", 9)), None);
        assert_eq!(outbox.next_deferred(), None, "a heartbeat is not repeated");
        let delay = Duration::from_millis(200);
        let refused = Instant::now();
        assert_eq!(
            outbox.answer(refusal(3, exhausted, "overloaded", 200)),
            None
        );
        let due = outbox.next_deferred().expect("the report is deferred");
        assert!(due > refused + delay && due <= refused + 2 * delay);
        outbox.queue_deferred();
        assert_eq!(next(&mut outbox), "nothing");
        assert_eq!(outbox.ledger().held().len(), 1, "it is still held");

        tokio::time::sleep_until(due).await;
        outbox.queue_deferred();
        assert_eq!(next(&mut outbox), "completion with token of t1");
        let answer = v1::MessageResult {
            sequence: 6,
            result: None,
        };
        assert_eq!(outbox.answer(answer), None);
        assert_eq!(outbox.reports_accepted(), 1);
        assert!(outbox.ledger().held().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deferred_report_of_a_lost_task_is_not_sent() {
        let mut outbox = outbox(1);
        receive(&mut outbox, "t1");
        outbox.report("t1".to_owned(), success());
        assert_eq!(next(&mut outbox), "completion with token of t1");
        let unavailable = Code::Unavailable;
        let answer = refusal(3, unavailable, "no_leader", u64::MAX);
        assert_eq!(outbox.answer(answer), None);
        let due = outbox.next_deferred().expect("the report is deferred");
        assert!(due <= Instant::now() + 2 * DEFERRED_MAX);
        outbox.forget("t1");
        assert_eq!(outbox.next_deferred(), None);
    }

    #[test]
    fn only_another_leader_or_a_registration_makes_the_worker_open_another_stream() {
        for reason in [NOT_LEADER, WORKER_NOT_FOUND] {
            let mut outbox = outbox(1);
            receive(&mut outbox, "t1");
            outbox.report("t1".to_owned(), success());
            assert_eq!(next(&mut outbox), "completion with token of t1");
            let order = outbox.answer(refusal(3, Code::Unavailable, reason, 0));
            let Some(Order::Reopen(error)) = order else {
                panic!("expected another stream, but the order is {order:?}")
            };
            assert_eq!(error.code(), reason);
            assert_eq!(next(&mut outbox), "completion with token of t1");
        }
    }

    #[test]
    fn a_task_that_arrives_with_another_token_is_the_same_task() {
        let mut outbox = outbox(1);
        assert!(outbox.receive("t1", "first"));
        assert!(!outbox.receive("t1", "second"));
        outbox.report("t1".to_owned(), success());
        assert_eq!(next(&mut outbox), "completion with first");
    }

    #[test]
    fn a_touch_without_a_waiting_caller_is_not_sent() {
        let mut outbox = outbox(1);
        let (answer, answered) = oneshot::channel();
        let extend = Duration::from_secs(1);
        outbox.touch(TouchOrder {
            task_id: "t1".to_owned(),
            extend,
            answer,
        });
        drop(answered);
        assert_eq!(next(&mut outbox), "nothing");
    }

    #[test]
    fn a_worker_that_stops_takes_back_its_offer() {
        let mut outbox = outbox(5);
        receive(&mut outbox, "t1");
        outbox.stop_taking();
        assert_eq!(next(&mut outbox), "slots 1");
        assert!(!outbox.ledger().held().is_empty());
        outbox.forget("t1");
        assert!(outbox.ledger().held().is_empty());
    }
}
