//! What the run undoes: its compensations (W82).

use super::{PayloadRef, ScopeId, TargetResult, tables};
use crate::definition::{CallRole, StepIndex};
use crate::ids::RunNumber;
use crate::mostly_default::ConstDefault;
use serde::{Deserialize, Serialize};

tables! {
    /// By run and position, the newest first. Live until what was done is undone, or as long as the run.
    83 Compensations((RunNumber, CompensationPlace)) -> CompensationRecord;
}

/// The position of a compensation in the list of its run: the newest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompensationPlace(u64);

impl CompensationPlace {
    /// The place of compensation number `order` of its run.
    #[must_use]
    pub fn of(order: u64) -> Self {
        Self(u64::MAX - order)
    }

    /// The number of the compensation in its run, from 0, in the order in which they were entered.
    #[must_use]
    pub fn order(self) -> u64 {
        u64::MAX - self.0
    }
}

impl super::Key for CompensationPlace {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        u64::decode(bytes).map(Self)
    }
}

/// An attempt at a step whose effect can be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompensationRecord {
    /// The scope of the step.
    pub scope: ScopeId,
    /// The step.
    pub step: StepIndex,
    /// The visit to it.
    pub visit: u32,
    /// The call that undoes it.
    pub call: CallRole,
    /// The input of that call, or why it could not be resolved: at most 512 bytes.
    pub input: Result<PayloadRef, String>,
}

/// The compensations of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompensationCounts {
    /// How many have been entered so far.
    pub entered_count: u64,
    /// How many are left to execute.
    pub open_count: u32,
    /// The progress of those that are executed at the end of the run.
    pub progress: CompensationProgress,
    /// Whether one that was executed at the end of the run has failed.
    pub has_failed: bool,
    /// How many have failed that undid dropped work (W82a).
    pub dropped_failed_count: u32,
}

impl CompensationCounts {
    /// How far the run has come with undoing, as it is published: `Partial` also if dropped work could not be undone.
    #[must_use]
    pub fn shown_progress(&self) -> CompensationProgress {
        match self.progress {
            CompensationProgress::None | CompensationProgress::Done
                if self.dropped_failed_count > 0 =>
            {
                CompensationProgress::Partial
            }
            progress => progress,
        }
    }
}

impl ConstDefault for CompensationCounts {
    const DEFAULT: &'static Self = &Self {
        entered_count: 0,
        open_count: 0,
        progress: CompensationProgress::None,
        has_failed: false,
        dropped_failed_count: 0,
    };
}

/// How far a run has come, at its end, with undoing what its steps have done (W82).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompensationProgress {
    /// It undoes nothing, or nothing yet.
    #[default]
    None,
    /// It is undoing.
    Running,
    /// It has undone everything.
    Done,
    /// It has undone a part: some compensations failed or were stopped.
    Partial,
}

impl CompensationProgress {
    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Running => "running",
            Self::Done => "done",
            Self::Partial => "partial",
        }
    }
}

/// Which blocks of a step are undone before it is tried again or left (W82a).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dropped {
    /// None. The step waits for what was being undone in a block that it has cancelled.
    Nothing,
    /// Those that did not end with a good outcome: the step ends well without them.
    Failed,
    /// All of them.
    All,
}

/// A step whose blocks are being undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undoing {
    /// Which of its blocks.
    pub dropped: Dropped,
    /// How it has ended.
    pub target_result: TargetResult,
    /// When it is tried again, in milliseconds; `None` if it is left.
    pub retry_due_ms: Option<u64>,
}

/// What the activation of a compensation undoes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// For what.
    pub owner: UndoOwner,
    /// The scope of the visit that it undoes. It may have ended; the compensation is executed in the scope of its owner.
    pub scope: ScopeId,
}

/// What a compensation is executed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UndoOwner {
    /// The end of the run.
    Run,
    /// The step of this activation, whose blocks are undone before it is tried again or left (W82a).
    Step(u64),
}
