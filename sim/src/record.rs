//! The record of a simulation: the input of the invariants, and the trace for people.

use crate::cluster::{Cluster, Member};
use crate::network::Host;
use crate::time::Time;
use flotilla_engine::ids::WorkerId;
use flotilla_engine::{Assignment, Command, Rejection, Reply, TaskToken};
use flotilla_replica::AppliedBatch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The outcome of a command, as far as its caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done, once.
    Acknowledged(Reply),
    /// It was applied, and rejected.
    Rejected(Rejection),
    /// It was certainly not done.
    NotDone,
    /// Unknown: it was done or not, or will be.
    Unknown,
}

/// A command of a caller outside the cluster, with all retries.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) command: Command,
    pub(crate) invoked_ms: u64,
    /// When the last response came, in milliseconds; unset without a response.
    pub(crate) returned_ms: Option<u64>,
    pub(crate) outcome: Outcome,
}

/// A linearizable read of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyRead {
    pub(crate) key: String,
    pub(crate) invoked_ms: u64,
    pub(crate) returned_ms: u64,
    /// Version and value, if the key exists.
    pub(crate) found: Option<(u64, Vec<u8>)>,
}

/// The assignment of a task to a worker, from an applied entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assigned {
    pub(crate) worker: WorkerId,
    pub(crate) token: TaskToken,
    /// The time of the log, in milliseconds.
    pub(crate) now_ms: u64,
    pub(crate) lease_expires_at_ms: u64,
}

/// How far a node had applied at the time of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) host: Host,
    pub(crate) index: u64,
    pub(crate) digest: u128,
    /// The time of the log, in milliseconds, if the node could be read.
    pub(crate) log_ms: Option<u64>,
}

/// All that happened.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) operations: Vec<Operation>,
    pub(crate) reads: Vec<KeyRead>,
    /// By index of the entry and token, as each node reported it when it applied the entry.
    pub(crate) assigned: BTreeMap<(u64, TaskToken), Vec<Assigned>>,
    /// The processes of workers that began a task, by token: each has a worker's id and its number.
    pub(crate) begun: BTreeMap<TaskToken, BTreeSet<(WorkerId, u64)>>,
    /// The clusters whose members applied an assignment of each task.
    pub(crate) assigned_in: BTreeMap<TaskToken, BTreeSet<Cluster>>,
    /// The streams of members' workers: who called, and who serves.
    pub(crate) member_streams: BTreeSet<(Member, Member)>,
    /// The tasks that members' workers began.
    pub(crate) member_began: BTreeSet<(TaskToken, Member)>,
    /// The tasks that members' workers completed, as their own nodes acknowledged.
    pub(crate) member_completed: BTreeSet<(TaskToken, Member)>,
    pub(crate) progress: Vec<Progress>,
    /// Causes of death that no process may have.
    pub(crate) failures: Vec<String>,
    pub(crate) faults_count: u64,
    trace: String,
}

/// The record of a simulation; clones share it.
#[derive(Clone)]
pub(crate) struct Record {
    time: Time,
    events: Arc<Mutex<Events>>,
}

impl Record {
    pub(crate) fn new(time: Time) -> Self {
        Self {
            time,
            events: Arc::default(),
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn say(&self, who: &str, what: &str) {
        let now_ms = self.time.now_ms();
        let line = format!("{now_ms:07} {who} {what}\n");
        self.events().trace.push_str(&line);
    }

    /// A caller submits a command. Returns its position among the operations.
    pub(crate) fn ask(&self, who: &str, command: &Command) -> usize {
        self.say(who, &format!("asks {command:?}"));
        let mut events = self.events();
        events.operations.push(Operation {
            command: command.clone(),
            invoked_ms: self.time.now_ms(),
            returned_ms: None,
            outcome: Outcome::Unknown,
        });
        events.operations.len() - 1
    }

    /// A command has an outcome, which may be unknown.
    pub(crate) fn answer(&self, who: &str, operation: usize, outcome: Outcome) {
        self.say(who, &format!("hears {outcome:?}"));
        let now_ms = self.time.now_ms();
        let operation = &mut self.events().operations[operation];
        operation.outcome = outcome;
        operation.returned_ms = Some(now_ms);
    }

    /// A caller has read a key.
    pub(crate) fn read(&self, who: &str, read: KeyRead) {
        self.say(who, &format!("reads {read:?}"));
        self.events().reads.push(read);
    }

    /// A node of the cluster has applied the assignment of a task to a worker.
    pub(crate) fn assigned(
        &self,
        (cluster, batch): (Cluster, &AppliedBatch),
        worker: &WorkerId,
        assignment: &Assignment,
    ) {
        let assigned = Assigned {
            worker: worker.clone(),
            token: assignment.token,
            now_ms: batch.now_ms,
            lease_expires_at_ms: assignment.lease_expires_at_ms,
        };
        let key = (batch.index, assignment.token);
        let events = &mut *self.events();
        events.assigned.entry(key).or_default().push(assigned);
        let clusters = events.assigned_in.entry(assignment.token).or_default();
        clusters.insert(cluster);
    }

    /// A leader serves the stream of a member's worker.
    pub(crate) fn member_stream(&self, member: Member, leader: Member) {
        self.say(&leader.to_string(), &format!("serves {member}"));
        self.events().member_streams.insert((member, leader));
    }

    /// A member's worker begins a task.
    pub(crate) fn member_began(&self, member: Member, token: TaskToken) {
        self.say(&member.to_string(), &format!("begins {token}"));
        self.events().member_began.insert((token, member));
    }

    /// A member's worker has completed a task.
    pub(crate) fn member_completed(&self, member: Member, token: TaskToken) {
        self.say(&member.to_string(), &format!("completed {token}"));
        self.events().member_completed.insert((token, member));
    }

    /// A process of a worker begins a task.
    pub(crate) fn begun(&self, worker: &WorkerId, incarnation: u64, token: TaskToken) {
        self.say(worker.as_str(), &format!("begins {token}"));
        let mut events = self.events();
        let processes = events.begun.entry(token).or_default();
        processes.insert((worker.clone(), incarnation));
    }

    /// A node has applied up to this index.
    pub(crate) fn applied(&self, progress: Progress) {
        let Progress {
            host,
            index,
            digest,
            ..
        } = progress;
        self.say(
            &format!("node {host}"),
            &format!("applied {index} {digest:032x}"),
        );
        self.events().progress.push(progress);
    }

    /// A fault is injected or ends.
    pub(crate) fn fault(&self, what: &str) {
        self.say("fault", what);
        self.events().faults_count += 1;
    }

    /// A process has stopped.
    pub(crate) fn fail(&self, what: String) {
        if !self.events().failures.contains(&what) {
            self.say("failure", &what);
            self.events().failures.push(what);
        }
    }

    /// All that happened.
    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trace.
    pub(crate) fn trace(&self) -> String {
        self.events().trace.clone()
    }
}
