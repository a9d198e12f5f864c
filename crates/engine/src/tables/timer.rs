//! Timers: obligations at a given time (design rule 6).

use super::{Key, tables};
use serde::{Deserialize, Serialize};

tables! {
    /// By kind and due time. Live until fired or cleared.
    19 Timers(TimerKey) -> ();
}

/// The full identity of a timer. A firing names it, so it fires exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimerKey {
    /// The kind of timer.
    pub kind: TimerKind,
    /// When it is due, in milliseconds.
    pub due_ms: u64,
    /// The number of the run, action run, worker, plan, stream or group that it belongs to.
    pub subject: u64,
    /// The activation or attempt.
    pub detail: u64,
}

/// What falls due. The byte is part of the key and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum TimerKind {
    /// A step's retry or poll; the subject is a run, the detail its activation.
    StepWake = 1,
    /// A step's wait for a signal or a decision expires; the subject is a run, the detail its activation.
    StepDeadline = 2,
    /// A delayed task becomes ready; the subject is an action run, the detail its attempt.
    TaskReady = 3,
    /// The first lease of a worker may end; the subject is the worker.
    LeaseExpiry = 4,
    /// A worker's heartbeat is overdue; the subject is a worker.
    WorkerSilence = 5,
    /// The report on an accepted task is overdue (W38); the subject is an action run, the detail its
    /// attempt.
    ReportExpiry = 6,
    /// Cached results may have expired (W37); the subject is a plan.
    CacheExpiry = 7,
    /// Records exceed the retention of a stream; the subject is the stream.
    StreamSweep = 8,
    /// Ack deadlines, redelivery delays or consumers' heartbeats are due; the subject is a group.
    GroupDue = 9,
    /// Work on a run was deferred to a later entry (design rule 13); the subject is the run.
    Continuation = 10,
    /// No worker has taken an action run in time (A2, W70); the subject is the action run, the detail its attempt.
    WaitExpiry = 11,
    /// Leases of a worker that is gone are left to free (A4); the subject is the worker.
    WorkerGone = 12,
    /// A run times out; the subject is the run.
    RunTimeout = 13,
    /// A step has taken too long in all; the subject is a run, the detail its activation.
    StepTotal = 14,
    /// An attempt at a step has taken too long; the subject is a run, the detail its activation.
    StepAttempt = 15,
    /// A run begins; the subject is the run.
    RunStart = 16,
}

impl TimerKind {
    /// All kinds: a driver looks for due timers of each.
    pub const ALL: [Self; 16] = [
        Self::StepWake,
        Self::StepDeadline,
        Self::TaskReady,
        Self::LeaseExpiry,
        Self::WorkerSilence,
        Self::ReportExpiry,
        Self::CacheExpiry,
        Self::StreamSweep,
        Self::GroupDue,
        Self::Continuation,
        Self::WaitExpiry,
        Self::WorkerGone,
        Self::RunTimeout,
        Self::StepTotal,
        Self::StepAttempt,
        Self::RunStart,
    ];

    /// Whether a change of leader postpones the timer (A4).
    #[must_use]
    pub fn is_graced(self) -> bool {
        match self {
            Self::LeaseExpiry | Self::WorkerSilence | Self::ReportExpiry | Self::GroupDue => true,
            Self::StepWake
            | Self::StepDeadline
            | Self::TaskReady
            | Self::CacheExpiry
            | Self::StreamSweep
            | Self::Continuation
            | Self::WaitExpiry
            | Self::WorkerGone
            | Self::RunTimeout
            | Self::StepTotal
            | Self::StepAttempt
            | Self::RunStart => false,
        }
    }
}

impl Key for TimerKind {
    fn encode(&self, out: &mut Vec<u8>) {
        let byte: u8 = match self {
            Self::StepWake => 1,
            Self::StepDeadline => 2,
            Self::TaskReady => 3,
            Self::LeaseExpiry => 4,
            Self::WorkerSilence => 5,
            Self::ReportExpiry => 6,
            Self::CacheExpiry => 7,
            Self::StreamSweep => 8,
            Self::GroupDue => 9,
            Self::Continuation => 10,
            Self::WaitExpiry => 11,
            Self::WorkerGone => 12,
            Self::RunTimeout => 13,
            Self::StepTotal => 14,
            Self::StepAttempt => 15,
            Self::RunStart => 16,
        };
        byte.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let byte = u8::decode(bytes)?;
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl Key for TimerKey {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.kind, self.due_ms, self.subject, self.detail).encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (kind, due_ms, subject, detail) = Key::decode(bytes)?;
        Some(Self {
            kind,
            due_ms,
            subject,
            detail,
        })
    }
}
