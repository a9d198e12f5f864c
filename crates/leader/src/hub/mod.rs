//! The hub: the leader's table of open polls, the source of offers and the destination of tasks.
//!
//! A poll's free slots are offered to the entries that the leader proposes (design rule 3). Slots
//! that an entry did not use come back when it is applied; those it used arrive as `DeliverTask`
//! effects. All of this is memory of one leader's term: when it is lost, workers reopen their polls
//! and name the tasks that they hold, and the rest is redelivered from the state (A4).

mod pending_actions;
mod poll;
mod polls;

pub use poll::{ActionKey, PollClosed, Request, Revocation, ToWorker, WorkerKey};

pub(crate) use pending_actions::ScanResult;
pub(crate) use polls::Delivery;

use crate::bug::PlantedBug;
use crate::channel::{Bounds, Receiver, channel};
use crate::limits::{POLL_BYTES_MAX, POLL_MESSAGES_MAX};
use flotilla_engine::Offer;
use flotilla_engine::ids::Namespace;
use flotilla_replica::OfferSource;
use poll::SessionSender;
use polls::Polls;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The open polls of this node.
#[derive(Default)]
pub struct Hub {
    // A std mutex: it is never held across an await, and offers are taken from a thread.
    polls: Mutex<Polls>,
    /// Notified when polls may be opened.
    taking: Notify,
    /// Notified when a scan of some action is due.
    due: Notify,
    /// Notified when an embedded worker has lost its poll.
    departed: Notify,
    /// The bug that is planted in the leader's parts, if any.
    bug: Option<PlantedBug>,
}

/// The open polls of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollSummary {
    /// The workers that poll.
    pub workers_count: usize,
    /// The tasks that they would take now.
    pub free_slots: u64,
    /// The actions for which tasks may wait, among those that they take.
    pub waiting_actions_count: usize,
}

/// An open poll; dropping it closes it, however its user ends. Tasks in flight to it stay leased,
/// and are redelivered when the worker polls again.
pub(crate) struct OpenPoll {
    hub: Arc<Hub>,
    worker: WorkerKey,
    number: u64,
    messages: Receiver<ToWorker>,
    closed: CancellationToken,
}

impl OfferSource for Hub {
    fn take(&self, commands_count: usize, bytes_max: usize) -> Vec<Offer> {
        self.lock().offer(commands_count, bytes_max)
    }

    fn return_offers(&self, offers: &[(u64, u32)]) {
        self.return_slots(offers, Vec::new());
    }
}

impl Hub {
    /// A hub without polls. A bug may be planted, in the hub or in the drivers.
    #[must_use]
    pub fn new(bug: Option<PlantedBug>) -> Self {
        Self {
            polls: Mutex::new(Polls::new(bug)),
            bug,
            ..Self::default()
        }
    }

    /// Whether this bug is planted.
    pub(crate) fn has(&self, bug: PlantedBug) -> bool {
        self.bug == Some(bug)
    }

    /// This node leads: polls may be opened.
    pub(crate) fn begin_term(&self) {
        self.lock().begin_term();
        self.taking.notify_waiters();
    }

    /// This node no longer leads: closes every poll and opens none.
    pub(crate) fn end_term(&self) {
        self.lock().end_term();
    }

    /// Whether polls may be opened.
    pub(crate) fn is_taking(&self) -> bool {
        self.lock().is_taking()
    }

    /// Waits until polls may be opened.
    pub async fn taking(&self) {
        loop {
            let taking = self.taking.notified();
            if self.is_taking() {
                return;
            }
            taking.await;
        }
    }

    /// Closes every poll: what was assigned to them is no longer known.
    pub(crate) fn close_all(&self) {
        self.lock().close_all();
        self.departed.notify_one();
    }

    /// Opens a poll; closes an older one of the same worker.
    ///
    /// # Errors
    /// [`PollClosed::NotLeading`] if this node does not lead.
    pub(crate) fn open(self: &Arc<Self>, request: Request) -> Result<OpenPoll, PollClosed> {
        let (sender, messages) = channel(Bounds {
            messages_max: POLL_MESSAGES_MAX,
            bytes_max: POLL_BYTES_MAX,
        });
        let worker = request.key.clone();
        let closed = CancellationToken::new();
        let session = SessionSender {
            messages: sender,
            _closing: closed.clone().drop_guard(),
        };
        let number = self.lock().open(request, session)?;
        Ok(OpenPoll {
            hub: Arc::clone(self),
            worker,
            number,
            messages,
            closed,
        })
    }

    /// An entry was applied: frees the slots that it offered and did not use, and sends what it has
    /// for workers.
    pub(crate) fn return_slots(&self, offers: &[(u64, u32)], deliveries: Vec<Delivery>) {
        let routed = {
            let mut polls = self.lock();
            let routed = polls.return_slots(offers, deliveries);
            self.ring_if_due(&polls);
            routed
        };
        for delivery in routed {
            let number = delivery.number;
            if delivery.send().is_err() {
                self.close(number);
            }
        }
    }

    /// A task of the action waits because no offer fitted it.
    pub(crate) fn task_waits(&self, key: &ActionKey) {
        let mut polls = self.lock();
        polls.task_waits(key);
        self.ring_if_due(&polls);
    }

    /// Waits for actions that may have both a waiting task and a free slot for it. The caller must
    /// report on each of them with [`Hub::record_scan`].
    pub(crate) async fn due(&self) -> Vec<ActionKey> {
        loop {
            let due = self.lock().take_due();
            if !due.is_empty() {
                return due;
            }
            self.due.notified().await;
        }
    }

    /// The labels of the polls that have a free slot for the action.
    pub(crate) fn free_labels(&self, key: &ActionKey) -> BTreeSet<BTreeMap<String, String>> {
        self.lock().free_labels(key)
    }

    /// Records the result of an action's scan.
    pub(crate) fn record_scan(&self, key: &ActionKey, scan_result: ScanResult) {
        let mut polls = self.lock();
        polls.record_scan(key, scan_result);
        self.ring_if_due(&polls);
    }

    /// The scanner is gone: all scans start again.
    pub(crate) fn forget_scans(&self) {
        let mut polls = self.lock();
        polls.forget_scans();
        self.ring_if_due(&polls);
    }

    /// Registers embedded workers that should have a poll; those without one count as absent since
    /// `since`.
    pub(crate) fn expect(&self, workers: impl IntoIterator<Item = WorkerKey>, since: Instant) {
        self.lock().note_absent(workers, since);
        self.departed.notify_one();
    }

    /// Waits for embedded workers that have been without a poll for `absence`, each since it last
    /// had one.
    pub(crate) async fn absent(&self, absence: Duration) -> Vec<WorkerKey> {
        loop {
            let next = match self.lock().take_absent(absence) {
                Ok(absent) => return absent,
                Err(next) => next,
            };
            tokio::select! {
                () = self.departed.notified() => {}
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }

    /// The open polls by namespace, for an operator.
    #[must_use]
    pub fn summaries(&self) -> BTreeMap<Namespace, PollSummary> {
        self.lock().summaries()
    }

    /// Whether the worker has an open poll.
    pub(crate) fn is_open(&self, key: &WorkerKey) -> bool {
        self.lock().is_open(key)
    }

    /// Opens the poll of a worker that takes no action.
    #[cfg(test)]
    pub(crate) fn open_for_test(self: &Arc<Self>, key: WorkerKey) -> impl Sized + use<> {
        let request = Request {
            key,
            actions: Vec::new(),
            labels: BTreeMap::new(),
            concurrency: 1,
            is_draining: false,
            is_embedded: true,
        };
        self.open(request).expect("it leads")
    }

    fn close(&self, number: u64) {
        if self.lock().close(number) {
            self.departed.notify_one();
        }
    }

    fn ring_if_due(&self, polls: &Polls) {
        if polls.is_any_due() {
            self.due.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Polls> {
        // A panic under the lock cannot leave the maps inconsistent in a way that matters: polls
        // are a cache of what workers sent.
        self.polls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenPoll {
    /// The next message; `None` once the poll is closed.
    pub(crate) async fn next(&mut self) -> Option<ToWorker> {
        self.messages.recv().await
    }

    /// The next message, if there is one already.
    pub(crate) fn next_ready(&mut self) -> Option<ToWorker> {
        self.messages.try_recv()
    }

    /// Waits until the poll is closed, whether messages are left or not.
    pub(crate) fn closed(&self) -> WaitForCancellationFutureOwned {
        self.closed.clone().cancelled_owned()
    }

    /// Sets the running total of tasks that the worker takes.
    ///
    /// # Errors
    /// [`PollClosed`] if the poll is no longer open.
    pub(crate) fn set_total(&self, max_tasks_total: u64) -> Result<(), PollClosed> {
        let mut polls = self.hub.lock();
        if !polls.set_total(self.number, max_tasks_total) {
            return Err(polls.why_closed(&self.worker));
        }
        self.hub.ring_if_due(&polls);
        Ok(())
    }

    /// Why the poll is no longer open.
    pub(crate) fn why_closed(&self) -> PollClosed {
        self.hub.lock().why_closed(&self.worker)
    }

    /// Whether the worker drains, as far as the hub knows.
    pub(crate) fn is_draining(&self) -> bool {
        self.hub.lock().is_draining(self.number)
    }

    /// Sets whether the worker drains: it then gets no tasks (A21).
    pub(crate) fn set_draining(&self, is_draining: bool) {
        let mut polls = self.hub.lock();
        polls.set_draining(self.number, is_draining);
        self.hub.ring_if_due(&polls);
    }

    /// Counts a task that did not come with an entry.
    pub(crate) fn count_task(&self) {
        self.hub.lock().count_task(self.number);
    }

    /// Uncounts a task that came with an entry and is not sent.
    pub(crate) fn discount_task(&self) {
        let mut polls = self.hub.lock();
        polls.discount_task(self.number);
        self.hub.ring_if_due(&polls);
    }
}

impl Drop for OpenPoll {
    fn drop(&mut self) {
        self.hub.close(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::poll::testing::task;
    use super::*;
    use flotilla_engine::ids::{ActionName, WorkerId};
    use futures::FutureExt;

    const ABSENCE: Duration = Duration::from_secs(3);

    fn worker(name: &str) -> WorkerKey {
        WorkerKey {
            namespace: Namespace::default_namespace(),
            worker: WorkerId::new(name).unwrap(),
        }
    }

    fn request(name: &str) -> Request {
        Request {
            key: worker(name),
            actions: vec![ActionName::new("charge").unwrap()],
            labels: BTreeMap::new(),
            concurrency: 100,
            is_draining: false,
            is_embedded: true,
        }
    }

    fn charge() -> ActionKey {
        (
            Namespace::default_namespace(),
            ActionName::new("charge").unwrap(),
        )
    }

    #[test]
    fn an_operator_sees_workers_slots_and_actions_that_wait_by_namespace() {
        let hub = leading();
        assert_eq!(hub.summaries(), BTreeMap::new());
        let poll = hub.open(request("w1")).unwrap();
        poll.set_total(3).unwrap();
        let _other = hub.open(request("w2")).unwrap();
        hub.task_waits(&charge());
        let expected = PollSummary {
            workers_count: 2,
            free_slots: 3,
            waiting_actions_count: 1,
        };
        let namespace = Namespace::default_namespace();
        assert_eq!(hub.summaries(), BTreeMap::from([(namespace, expected)]));
    }

    fn leading() -> Arc<Hub> {
        let hub = Arc::new(Hub::default());
        hub.begin_term();
        hub
    }

    fn slots(hub: &Hub) -> Vec<u32> {
        let offers = hub.take(1, usize::MAX);
        offers.into_iter().map(|offer| offer.slots).collect()
    }

    fn delivery(poll: &OpenPoll, message: ToWorker) -> Delivery {
        Delivery {
            key: worker("w"),
            poll: Some(poll.number),
            message,
        }
    }

    #[test]
    fn entries_in_flight_share_the_free_slots_and_give_the_rest_back() {
        let hub = leading();
        let poll = hub.open(request("w")).unwrap();
        poll.set_total(4).unwrap();
        assert_eq!(slots(&hub), [2]);
        assert_eq!(slots(&hub), [1]);
        assert_eq!(slots(&hub), [1]);
        assert_eq!(slots(&hub), [0_u32; 0]);
        hub.return_slots(&[(poll.number, 2)], Vec::new());
        assert_eq!(slots(&hub), [1]);
    }

    #[test]
    fn slots_of_an_entry_that_is_not_proposed_are_offered_again() {
        let hub = leading();
        let poll = hub.open(request("w")).unwrap();
        poll.set_total(1).unwrap();
        assert_eq!(slots(&hub), [1]);
        assert_eq!(slots(&hub), [0_u32; 0]);
        hub.return_offers(&[(poll.number, 1)]);
        assert_eq!(slots(&hub), [1]);
    }

    #[test]
    fn a_slot_that_an_entry_used_is_not_offered_again() {
        let hub = leading();
        let mut poll = hub.open(request("w")).unwrap();
        poll.set_total(1).unwrap();
        assert_eq!(slots(&hub), [1]);
        hub.return_slots(&[(poll.number, 1)], vec![delivery(&poll, task("charge"))]);
        assert_eq!(slots(&hub), [0_u32; 0]);
        assert!(matches!(poll.next_ready(), Some(ToWorker::Task(_))));
        poll.discount_task();
        assert_eq!(slots(&hub), [1]);
    }

    #[test]
    fn polls_take_turns_when_not_all_of_them_fit_into_an_entry() {
        let hub = leading();
        let polls = ["a", "b", "c"].map(|name| hub.open(request(name)).unwrap());
        for poll in &polls {
            poll.set_total(100).unwrap();
        }
        let bytes_max = 2 * hub.lock().offer_bytes(polls[0].number);
        let taken = || {
            let offers = hub.take(1, bytes_max).into_iter();
            let workers = offers.map(|offer| offer.worker.to_string());
            workers.collect::<Vec<_>>()
        };
        assert_eq!(
            [taken(), taken(), taken()],
            [["a", "b"], ["c", "a"], ["b", "c"]]
        );
    }

    #[test]
    fn a_newer_poll_takes_the_place_of_the_older_one() {
        let hub = leading();
        let mut older = hub.open(request("w")).unwrap();
        let mut newer = hub.open(request("w")).unwrap();
        assert!(older.next().now_or_never().unwrap().is_none());
        hub.return_slots(&[], vec![delivery(&older, ToWorker::Draining)]);
        assert!(matches!(newer.next_ready(), Some(ToWorker::Draining)));
        assert_eq!(older.set_total(1), Err(PollClosed::Replaced));
        drop(older);
        assert!(hub.is_open(&worker("w")));
    }

    #[test]
    fn a_poll_is_opened_only_within_a_term() {
        let hub = Arc::new(Hub::default());
        assert!(hub.open(request("w")).is_err());
        hub.begin_term();
        let mut poll = hub.open(request("w")).unwrap();
        hub.end_term();
        assert!(poll.next().now_or_never().unwrap().is_none());
        assert_eq!(poll.why_closed(), PollClosed::NotLeading);
        assert!(hub.open(request("w")).is_err());
        assert!(!hub.is_open(&worker("w")));
    }

    #[tokio::test]
    async fn the_beginning_of_a_term_can_be_waited_for() {
        let hub = Arc::new(Hub::default());
        let mut taking = Box::pin(hub.taking());
        assert!(taking.as_mut().now_or_never().is_none());
        hub.begin_term();
        taking.await;
        hub.taking().await;
    }

    #[test]
    fn a_worker_that_is_too_slow_loses_its_poll() {
        let hub = leading();
        let mut poll = hub.open(request("w")).unwrap();
        for _ in 0..=POLL_MESSAGES_MAX {
            hub.return_slots(&[], vec![delivery(&poll, task("charge"))]);
        }
        assert!(!hub.is_open(&worker("w")));
        poll.closed().now_or_never().expect("it is closed");
        let mut count = 0;
        while let Some(Some(_)) = poll.next().now_or_never() {
            count += 1;
        }
        assert_eq!(count, POLL_MESSAGES_MAX);
        assert_eq!(poll.why_closed(), PollClosed::Lost);
    }

    #[tokio::test]
    async fn a_worker_gets_no_offers_while_it_drains() {
        let hub = leading();
        let poll = hub.open(request("w")).unwrap();
        poll.set_total(1).unwrap();
        assert_eq!(hub.due().await, [charge()]);
        hub.record_scan(&charge(), ScanResult::NoneFitting);
        hub.return_slots(&[], vec![delivery(&poll, ToWorker::Draining)]);
        assert!(poll.is_draining());
        assert_eq!(slots(&hub), [0_u32; 0]);
        poll.set_draining(false);
        assert_eq!(hub.due().await, [charge()]);
        assert_eq!(slots(&hub), [1]);
    }

    #[tokio::test]
    async fn a_slot_makes_its_actions_due_and_a_look_that_found_nothing_ends_it() {
        let hub = leading();
        let poll = hub.open(request("w")).unwrap();
        poll.set_total(1).unwrap();
        assert_eq!(hub.due().await, [charge()]);
        hub.record_scan(&charge(), ScanResult::NoneReady);
        assert_eq!(hub.due().now_or_never(), None);
        hub.task_waits(&charge());
        assert_eq!(hub.due().await, [charge()]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_worker_is_absent_from_when_it_lost_its_own_poll() {
        let hub = leading();
        let first = hub.open(request("first")).unwrap();
        let second = hub.open(request("second")).unwrap();
        let start = Instant::now();
        drop(first);
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(second);
        assert_eq!(hub.absent(ABSENCE).await, [worker("first")]);
        assert_eq!(start.elapsed(), ABSENCE);
        assert_eq!(hub.absent(ABSENCE).await, [worker("second")]);
        assert_eq!(start.elapsed(), ABSENCE + Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_comes_back_and_leaves_again_is_absent_from_then_on() {
        let hub = leading();
        drop(hub.open(request("w")).unwrap());
        tokio::time::advance(Duration::from_secs(2)).await;
        let back = hub.open(request("w")).unwrap();
        drop(back);
        let left = Instant::now();
        assert_eq!(hub.absent(ABSENCE).await, [worker("w")]);
        assert_eq!(left.elapsed(), ABSENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_part_of_a_node_is_missed() {
        let hub = leading();
        let request = Request {
            is_embedded: false,
            ..request("w")
        };
        drop(hub.open(request).unwrap());
        tokio::time::advance(ABSENCE).await;
        assert_eq!(hub.absent(ABSENCE).now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn workers_whose_polls_were_lost_and_those_that_never_came_are_absent() {
        let hub = leading();
        let _poll = hub.open(request("lost")).unwrap();
        hub.close_all();
        let _there = hub.open(request("there")).unwrap();
        let names = ["there", "never", "lost"];
        hub.expect(names.map(worker), Instant::now());
        assert_eq!(hub.absent(ABSENCE).await, [worker("lost"), worker("never")]);
    }
}
