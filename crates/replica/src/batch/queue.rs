//! The queue of commands that wait to be proposed, bounded by class and fair to namespaces (design rules 2 and 13).

use crate::batch::fair_lane::FairLane;
use crate::inspection::{PendingClass, PendingCommands};
use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::{ENTRY_COMMANDS_MAX, ENTRY_WEIGHT_BYTES_MAX};
use flotilla_engine::{Admission, CommandEnvelope, CommandScope, Rejection, Reply};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// How a submission ended.
#[derive(Debug)]
pub(crate) enum SubmissionResult {
    /// It was applied.
    Done(Result<Reply, Rejection>),
    /// It was certainly not proposed: this node does not lead.
    NotLeader,
    /// It was certainly not proposed: the queue was full, and its namespace had the most commands there.
    Shed,
    /// It may or may not have been applied, or may still be.
    Unknown,
}

/// A queued command.
pub(crate) struct Submission {
    pub(crate) envelope: CommandEnvelope,
    pub(crate) bytes: usize,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) result_sender: oneshot::Sender<SubmissionResult>,
    pub(crate) arrival: Arrival,
}

/// The order in which commands first arrived. A command that is queued again, because its entry had no budget for it,
/// keeps its place before later ones of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival(u64);

impl Submission {
    /// What it counts for in an entry.
    pub(super) fn weight(&self) -> usize {
        self.envelope.command.weight(self.bytes)
    }

    /// Ends it because others need its place.
    fn shed(self) {
        // A caller that has withdrawn it, or is gone, does not need the result.
        if self.ticket.take() {
            drop(self.result_sender.send(SubmissionResult::Shed));
        }
    }
}

/// Decides a race: the batcher takes the submission, or its caller withdraws it.
#[derive(Debug, Default)]
pub(crate) struct Ticket(AtomicU8);

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Ticket {
    /// Withdraws the submission; false if it may already be proposed.
    pub(crate) fn withdraw(&self) -> bool {
        self.change(WITHDRAWN)
    }

    /// Whether the submission was withdrawn.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Acquire) == WITHDRAWN
    }

    fn take(&self) -> bool {
        self.change(TAKEN)
    }

    fn change(&self, to: u8) -> bool {
        self.0
            .compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// The capacity of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    pub(crate) intake_max: usize,
    pub(crate) progress_max: usize,
    pub(crate) bytes_max: usize,
}

/// The content of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) intake: usize,
    pub(crate) progress: usize,
    pub(crate) bytes: usize,
}

/// New work gets one in this many parts of an entry if it waits: other work of all namespaces must not keep it waiting.
const INTAKE_PART: usize = 8;

/// The least number of commands of namespaces in an entry from which the dominant namespace is determined.
const DOMINANCE_COMMANDS_MIN: usize = 8;

/// The queue is full: the submission was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Commands that wait to be proposed.
pub(crate) struct Queue {
    bounds: QueueBounds,
    arrivals_count: AtomicU64,
    lanes: Mutex<Lanes>,
    arrived: Notify,
    /// Notified when as many commands wait as are wanted. Separate from `arrived`, so that a
    /// gathering batcher is not woken for each command.
    enough: Notify,
}

#[derive(Default)]
struct Lanes {
    /// Commands of the leader's drivers, which bound them. They serve all namespaces and go first.
    obligations: FairLane,
    progress: FairLane,
    intake: FairLane,
    /// The weight of the waiting commands together.
    weight: usize,
    /// How many commands the batcher waits for.
    wanted: usize,
    /// The namespace that had nearly all commands of the last entry, if that entry had at least
    /// [`DOMINANCE_COMMANDS_MIN`] of them and its wait was not cut short.
    dominant: Option<Namespace>,
    /// Whether a command of a namespace other than the dominant one has arrived, which ends the batcher's wait.
    has_other: bool,
}

/// A part of the queue.
#[derive(Clone, Copy, Debug)]
enum Lane {
    Obligations,
    Progress,
    Intake,
}

impl Lane {
    /// That of the commands of a class, except obligations.
    fn of(admission: Admission) -> Self {
        match admission {
            Admission::Intake => Self::Intake,
            Admission::Progress => Self::Progress,
        }
    }
}

/// The room of an entry.
#[derive(Clone, Copy, Debug)]
struct EntryRoom {
    commands: usize,
    weight: usize,
}

const ENTRY: EntryRoom = EntryRoom {
    commands: ENTRY_COMMANDS_MAX,
    weight: ENTRY_WEIGHT_BYTES_MAX,
};

impl EntryRoom {
    /// All of it but the part that is kept for new work.
    fn without_intake(self) -> Self {
        Self {
            commands: self.commands - self.commands / INTAKE_PART,
            weight: self.weight - self.weight / INTAKE_PART,
        }
    }
}

/// The commands of the next entry.
#[derive(Default)]
struct Taken {
    submissions: Vec<Submission>,
    weight: usize,
}

impl Queue {
    pub(crate) fn new(bounds: QueueBounds) -> Self {
        Self {
            bounds,
            arrivals_count: AtomicU64::new(0),
            lanes: Mutex::default(),
            arrived: Notify::new(),
            enough: Notify::new(),
        }
    }

    /// The place of a command that arrives now.
    pub(crate) fn arrive(&self) -> Arrival {
        Arrival(self.arrivals_count.fetch_add(1, Ordering::Relaxed))
    }

    /// Queues a submission. If its class is full, a namespace with more waiting commands loses its newest ones.
    pub(crate) fn push(&self, submission: Submission) -> Result<(), Full> {
        let mut lanes = self.lanes();
        if !lanes.has_room(&self.bounds, &submission) {
            // While nothing is proposed, withdrawn commands must not use the capacity.
            lanes.drop_withdrawn();
            lanes.make_room(&self.bounds, &submission)?;
        }
        let had_enough = lanes.has_enough();
        lanes.add(submission);
        let has_enough = lanes.has_enough();
        drop(lanes);
        self.arrived.notify_one();
        if has_enough && !had_enough {
            self.enough.notify_one();
        }
        Ok(())
    }

    /// The current content.
    pub(crate) fn waiting(&self) -> Waiting {
        let lanes = self.lanes();
        Waiting {
            intake: lanes.intake.len(),
            progress: lanes.progress.len() + lanes.obligations.len(),
            bytes: lanes.bytes(),
        }
    }

    /// The current content by scope and class.
    pub(crate) fn pending(&self) -> Vec<PendingCommands> {
        let lanes = self.lanes();
        let classes = [
            (PendingClass::Obligation, &lanes.obligations),
            (PendingClass::Progress, &lanes.progress),
            (PendingClass::Intake, &lanes.intake),
        ];
        let rows = classes.into_iter().flat_map(|(class, lane)| {
            lane.waiting()
                .map(move |(scope, count, bytes)| PendingCommands {
                    scope: scope.clone(),
                    class,
                    count,
                    bytes,
                })
        });
        rows.collect()
    }

    /// Waits until the queue is not empty.
    pub(crate) async fn wait(&self) {
        while self.is_empty() {
            self.arrived.notified().await;
        }
    }

    /// Waits until the queue holds `count` commands, enough to fill an entry, or a command of a namespace other than the
    /// dominant one. Only the batcher may call this.
    pub(crate) async fn wait_for(&self, count: usize) {
        self.lanes().wanted = count;
        while !self.lanes().has_enough() {
            self.enough.notified().await;
        }
    }

    /// Takes what fits into one entry, progress first; but if new work waits, it gets a part. Drops withdrawn commands.
    pub(crate) fn take_entry(&self) -> Vec<Submission> {
        let mut lanes = self.lanes();
        let mut taken = Taken::default();
        lanes.take(&mut taken, Lane::Obligations, ENTRY);
        if !lanes.intake.is_empty() {
            lanes.take(&mut taken, Lane::Progress, ENTRY.without_intake());
            lanes.take(&mut taken, Lane::Intake, ENTRY);
        }
        lanes.take(&mut taken, Lane::Progress, ENTRY);
        lanes.note_taken(&taken.submissions);
        taken.submissions
    }

    fn is_empty(&self) -> bool {
        self.lanes().count() == 0
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    fn has_room(&self, bounds: &QueueBounds, submission: &Submission) -> bool {
        let (length, length_max, bytes_max) = match submission.envelope.command.body.admission() {
            Admission::Intake => (self.intake.len(), bounds.intake_max, bounds.bytes_max / 2),
            Admission::Progress => (
                self.progress.len() + self.obligations.len(),
                bounds.progress_max,
                bounds.bytes_max,
            ),
        };
        length < length_max && self.bytes() + submission.bytes <= bytes_max
    }

    /// Sheds commands of the same class until there is room for `submission`, if that is fair.
    fn make_room(&mut self, bounds: &QueueBounds, submission: &Submission) -> Result<(), Full> {
        while !self.has_room(bounds, submission) {
            let lane = Lane::of(submission.envelope.command.body.admission());
            let shed = self.lane(lane).pop_for(submission).ok_or(Full)?;
            self.weight -= shed.weight();
            shed.shed();
        }
        Ok(())
    }

    /// Whether the batcher need not wait for more.
    fn has_enough(&self) -> bool {
        self.count() >= self.wanted || self.weight >= ENTRY_WEIGHT_BYTES_MAX || self.has_other
    }

    /// Records which namespace sent nearly all commands of an entry. Gathering raises its throughput and the latency of every
    /// command; commands of other namespaces end the wait, to keep their latency low.
    ///
    /// After a wait that was cut short, the next one is not: a series of small entries would lower the throughput of all
    /// namespaces.
    fn note_taken(&mut self, taken: &[Submission]) {
        let gathered = !std::mem::take(&mut self.has_other);
        let namespaces = taken
            .iter()
            .filter_map(|one| one.envelope.command.scope.namespace());
        self.dominant = (gathered && namespaces.clone().count() >= DOMINANCE_COMMANDS_MIN)
            .then(|| dominant(namespaces).cloned())
            .flatten();
    }

    fn is_other(&self, scope: &CommandScope) -> bool {
        let pair = self.dominant.as_ref().zip(scope.namespace());
        pair.is_some_and(|(dominant, namespace)| dominant != namespace)
    }

    fn count(&self) -> usize {
        self.obligations.len() + self.progress.len() + self.intake.len()
    }

    fn bytes(&self) -> usize {
        self.obligations.bytes() + self.progress.bytes() + self.intake.bytes()
    }

    fn add(&mut self, submission: Submission) {
        self.weight += submission.weight();
        self.has_other |= self.is_other(&submission.envelope.command.scope);
        let body = &submission.envelope.command.body;
        let lane = match body.kind().is_obligation() {
            true => Lane::Obligations,
            false => Lane::of(body.admission()),
        };
        self.lane(lane).add(submission);
    }

    fn lane(&mut self, lane: Lane) -> &mut FairLane {
        match lane {
            Lane::Obligations => &mut self.obligations,
            Lane::Progress => &mut self.progress,
            Lane::Intake => &mut self.intake,
        }
    }

    /// Drops withdrawn commands.
    fn drop_withdrawn(&mut self) {
        for lane in [Lane::Obligations, Lane::Progress, Lane::Intake] {
            let weight = self.lane(lane).drop_withdrawn();
            self.weight -= weight;
        }
    }

    /// Takes commands of a lane until the entry is full.
    fn take(&mut self, taken: &mut Taken, lane: Lane, room: EntryRoom) {
        while taken.submissions.len() < room.commands {
            let next = self.lane(lane).front();
            let Some(weight) = next.map(Submission::weight) else {
                return;
            };
            if !taken.submissions.is_empty() && taken.weight + weight > room.weight {
                return;
            }
            let submission = self.lane(lane).pop();
            let submission = submission.expect("there is a front one, and the lanes are locked");
            self.weight -= weight;
            if submission.ticket.take() {
                taken.weight += weight;
                taken.submissions.push(submission);
            }
        }
    }
}

/// The value that makes up at least seven eighths of `values`, if any (Boyer and Moore's majority vote).
fn dominant<'v, V: PartialEq>(values: impl Iterator<Item = &'v V> + Clone) -> Option<&'v V> {
    let mut candidate = None;
    let mut lead = 0_usize;
    for value in values.clone() {
        match candidate {
            Some(found) if found == value => lead += 1,
            _ if lead == 0 => (candidate, lead) = (Some(value), 1),
            _ => lead -= 1,
        }
    }
    let found = candidate?;
    let (equal, count) = values.fold((0, 0), |(equal, count), value| {
        (equal + usize::from(found == value), count + 1)
    });
    (equal * 8 >= count * 7).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::command;
    use flotilla_engine::bytes::Bytes;
    use flotilla_engine::ids::StreamName;
    use flotilla_engine::limits::{ENTRY_BYTES_MAX, LISTED_ROW_BYTES};
    use flotilla_engine::{AppendRecords, Command, NewRecord, SweepRuns};
    use futures::FutureExt;
    use std::collections::BTreeMap;
    use std::pin::pin;

    fn queue() -> Queue {
        Queue::new(QueueBounds {
            intake_max: 2,
            progress_max: 3,
            bytes_max: 1_000,
        })
    }

    fn push(queue: &Queue, admission: Admission, bytes: usize) -> Result<Arc<Ticket>, Full> {
        push_at(queue, queue.arrive(), command(admission), bytes)
    }

    fn push_at(
        queue: &Queue,
        arrival: Arrival,
        command: Command,
        bytes: usize,
    ) -> Result<Arc<Ticket>, Full> {
        let ticket = Arc::<Ticket>::default();
        let (result_sender, _) = oneshot::channel();
        queue.push(Submission {
            envelope: command.by_anyone(),
            bytes,
            ticket: Arc::clone(&ticket),
            result_sender,
            arrival,
        })?;
        Ok(ticket)
    }

    /// A queue that holds several entries.
    fn wide_queue() -> Queue {
        Queue::new(QueueBounds {
            intake_max: 9_999,
            progress_max: 9_999,
            bytes_max: 4 * ENTRY_BYTES_MAX,
        })
    }

    #[test]
    fn new_work_is_refused_first_and_open_work_still_has_room() {
        let queue = queue();
        assert!(push(&queue, Admission::Intake, 1).is_ok());
        assert!(push(&queue, Admission::Intake, 1).is_ok());
        assert!(push(&queue, Admission::Intake, 1).is_err());
        for _ in 0..3 {
            assert!(push(&queue, Admission::Progress, 1).is_ok());
        }
        assert!(push(&queue, Admission::Progress, 1).is_err());
    }

    #[test]
    fn an_operator_sees_what_waits_by_namespace_and_class() {
        let queue = queue();
        let mut other = command(Admission::Intake);
        other.scope = Namespace::new("other").expect("a name").into();
        push_at(&queue, queue.arrive(), other, 7).expect("there is room");
        for bytes in [1, 2] {
            push(&queue, Admission::Progress, bytes).expect("there is room");
        }
        let seen = queue.pending().into_iter();
        let seen = seen.map(|row| {
            (
                row.scope.as_str().to_owned(),
                row.class,
                row.count,
                row.bytes,
            )
        });
        let expected = [
            ("default", PendingClass::Progress, 2, 3),
            ("other", PendingClass::Intake, 1, 7),
        ];
        let expected = expected
            .map(|(namespace, class, count, bytes)| (namespace.to_owned(), class, count, bytes));
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_namespace_that_fills_the_queue_loses_a_place_to_another() {
        let queue = queue();
        let noisy = [1, 2].map(|_| push(&queue, Admission::Intake, 1).expect("there is room"));
        let mut quiet = command(Admission::Intake);
        quiet.scope = Namespace::new("quiet").expect("a name").into();
        push_at(&queue, queue.arrive(), quiet.clone(), 1)
            .expect("it is the first of its namespace");
        assert!(!noisy[1].withdraw(), "the newest one was shed");
        assert!(push(&queue, Admission::Intake, 1).is_err());
        assert!(push_at(&queue, queue.arrive(), quiet, 1).is_err());
        assert_eq!(queue.take_entry().len(), 2);
    }

    #[test]
    fn new_work_gets_a_part_of_an_entry_and_obligations_go_first() {
        let queue = wide_queue();
        let obligation = Command::of_cluster(SweepRuns {}).untyped();
        for _ in 0..2 * ENTRY_COMMANDS_MAX {
            push(&queue, Admission::Progress, 1).unwrap();
            push(&queue, Admission::Intake, 1).unwrap();
        }
        push_at(&queue, queue.arrive(), obligation.clone(), 1).unwrap();
        let entry = queue.take_entry();
        assert_eq!(entry.len(), ENTRY_COMMANDS_MAX);
        assert_eq!(entry[0].envelope.command, obligation);
        let intake = entry
            .iter()
            .map(|one| one.envelope.command.body.admission());
        let intake = intake.filter(|class| *class == Admission::Intake).count();
        assert_eq!(intake, ENTRY_COMMANDS_MAX / INTAKE_PART);
    }

    #[test]
    fn bytes_bound_the_queue_too_and_are_given_back() {
        let queue = queue();
        assert!(push(&queue, Admission::Intake, 501).is_err());
        assert!(push(&queue, Admission::Progress, 900).is_ok());
        assert!(push(&queue, Admission::Progress, 200).is_err());
        assert_eq!(queue.take_entry().len(), 1);
        assert!(push(&queue, Admission::Progress, 1_000).is_ok());
    }

    #[test]
    fn an_entry_takes_open_work_first_and_no_more_than_its_bounds() {
        let queue = wide_queue();
        push(&queue, Admission::Intake, 1).unwrap();
        push(&queue, Admission::Progress, ENTRY_BYTES_MAX).unwrap();
        let first = queue.take_entry();
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].bytes, ENTRY_BYTES_MAX);
        for _ in 0..ENTRY_COMMANDS_MAX {
            push(&queue, Admission::Progress, 1).unwrap();
        }
        assert_eq!(queue.take_entry().len(), ENTRY_COMMANDS_MAX);
        assert_eq!(queue.take_entry().len(), 1);
    }

    #[test]
    fn a_wait_for_a_count_ends_with_the_command_that_reaches_it() {
        let queue = queue();
        push(&queue, Admission::Intake, 1).unwrap();
        let mut waiting = pin!(queue.wait_for(3));
        assert!(waiting.as_mut().now_or_never().is_none());
        push(&queue, Admission::Progress, 1).unwrap();
        assert!(waiting.as_mut().now_or_never().is_none());
        push(&queue, Admission::Progress, 1).unwrap();
        assert!(waiting.now_or_never().is_some());
        assert!(queue.wait_for(2).now_or_never().is_some());
    }

    #[test]
    fn a_command_of_another_namespace_ends_the_wait_for_more_of_the_dominant_one() {
        let queue = wide_queue();
        let push_all = |scopes: &[CommandScope]| {
            for scope in scopes {
                let mut command = command(Admission::Intake);
                command.scope = scope.clone();
                push_at(&queue, queue.arrive(), command, 1).expect("there is room");
            }
        };
        let named = |name: &str| CommandScope::from(Namespace::new(name).expect("a name"));
        let [noisy, quiet] = ["noisy", "quiet"].map(named);
        // Whether a command ends the wait that follows an entry with these.
        let ends_wait = |entry: &[CommandScope], scope: &CommandScope| {
            push_all(entry);
            queue.take_entry();
            let mut waiting = pin!(queue.wait_for(99));
            assert!(waiting.as_mut().now_or_never().is_none());
            push_all(std::slice::from_ref(scope));
            waiting.now_or_never().is_some()
        };
        let mut entry = vec![noisy.clone(); DOMINANCE_COMMANDS_MIN - 1];
        assert!(!ends_wait(&entry, &quiet), "too small an entry");
        entry.push(quiet.clone());
        queue.take_entry();
        assert!(!ends_wait(&entry, &noisy), "it is the dominant one");
        queue.take_entry();
        assert!(ends_wait(&entry, &quiet));
        assert!(
            !ends_wait(&entry, &quiet),
            "the entry before did not gather"
        );
        queue.take_entry();
        assert!(ends_wait(&entry, &quiet));
        queue.take_entry();
        assert!(
            !ends_wait(&entry, &CommandScope::Cluster),
            "that is a driver's"
        );
        queue.take_entry();
        let of_drivers = vec![CommandScope::Cluster; 2 * DOMINANCE_COMMANDS_MIN];
        assert!(
            !ends_wait(&of_drivers, &quiet),
            "drivers serve all namespaces"
        );
    }

    #[test]
    fn a_dominant_value_makes_up_seven_eighths() {
        assert_eq!(dominant([2, 1, 1, 1, 1, 1, 1, 1].iter()), Some(&1));
        assert_eq!(dominant([2, 1, 1, 1, 1, 1, 1].iter()), None);
        assert_eq!(dominant([1, 2].iter()), None);
        assert_eq!(dominant::<u8>([].iter()), None);
    }

    #[test]
    fn an_entry_takes_no_more_than_its_budget_admits() {
        let queue = wide_queue();
        let record = NewRecord {
            payload: Bytes::from("{}"),
            headers: BTreeMap::new(),
            key: None,
            partition: None,
        };
        let append = AppendRecords {
            stream: StreamName::new("parcels").expect("a name"),
            records: vec![record; 1_000],
        };
        let append = Command::new(Namespace::default_namespace(), append).untyped();
        for _ in 0..100 {
            push_at(&queue, queue.arrive(), append.clone(), 10_000).unwrap();
        }
        let fit = ENTRY_WEIGHT_BYTES_MAX / (10_000 + 1_000 * LISTED_ROW_BYTES);
        assert_eq!(queue.take_entry().len(), fit);
        // No new work waits, which would get a part of the entry.
        let queue = wide_queue();
        for _ in 0..4 {
            push(&queue, Admission::Progress, ENTRY_WEIGHT_BYTES_MAX / 3).unwrap();
        }
        assert_eq!(queue.take_entry().len(), 3);
    }

    #[test]
    fn commands_that_an_entry_had_no_budget_for_keep_their_order_before_later_ones() {
        let queue = wide_queue();
        let taken = || -> Vec<(Arrival, usize)> {
            let entry = queue.take_entry();
            entry.iter().map(|one| (one.arrival, one.bytes)).collect()
        };
        for bytes in 1..=3 {
            push(&queue, Admission::Intake, bytes).unwrap();
        }
        let mut refused = taken();
        for later in 4..=5 {
            push(&queue, Admission::Intake, later).unwrap();
            push(&queue, Admission::Progress, 10 * later).unwrap();
            for (arrival, bytes) in refused {
                push_at(&queue, arrival, command(Admission::Intake), bytes).unwrap();
            }
            let entry = taken();
            let sizes: Vec<_> = entry.iter().map(|(_, bytes)| *bytes).collect();
            let expected: Vec<_> = [10 * later].into_iter().chain(1..=later).collect();
            assert_eq!(sizes, expected);
            refused = entry.into_iter().skip(1).collect();
        }
    }

    #[test]
    fn as_many_bytes_as_an_entry_has_room_for_are_enough() {
        let queue = wide_queue();
        let mut waiting = pin!(queue.wait_for(9));
        push(&queue, Admission::Progress, ENTRY_WEIGHT_BYTES_MAX - 1).unwrap();
        assert!(waiting.as_mut().now_or_never().is_none());
        push(&queue, Admission::Progress, 1).unwrap();
        assert!(waiting.now_or_never().is_some());
    }

    #[test]
    fn a_withdrawn_submission_frees_its_place() {
        let queue = queue();
        push(&queue, Admission::Intake, 1).unwrap();
        let withdrawn = push(&queue, Admission::Intake, 400).unwrap();
        assert!(push(&queue, Admission::Intake, 400).is_err());
        assert!(withdrawn.withdraw());
        assert!(push(&queue, Admission::Intake, 400).is_ok());
        assert_eq!(queue.take_entry().len(), 2);
    }

    #[test]
    fn a_withdrawn_submission_is_not_proposed_and_a_taken_one_cannot_be_withdrawn() {
        let queue = queue();
        let withdrawn = push(&queue, Admission::Progress, 1).unwrap();
        let kept = push(&queue, Admission::Progress, 1).unwrap();
        assert!(withdrawn.withdraw());
        assert_eq!(queue.take_entry().len(), 1);
        assert!(!kept.withdraw());
    }
}
