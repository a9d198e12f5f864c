//! Scopes: what runs concurrently within a run (W53).

use super::{Cursor, FailureCause, Key, PayloadRef, tables};
use crate::definition::{BlockIndex, Definition, StepIndex, StepKind, StepMapping};
use crate::ids::{OutcomeName, RunNumber, ScopeNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// The scopes below a run, by run and number. Live until the scope ends.
    76 Scopes((RunNumber, ScopeNumber)) -> ScopeRecord, HOT;
    /// How the branches of a step ended, by run, activation of the step and position of the branch. Live until the step
    /// is left.
    77 BranchResults((RunNumber, u64, u32)) -> BranchResult;
    /// The state of a run, by the number of its root scope, and what scopes below it have written, by theirs (W58, W66).
    /// The former live as long as the run, the latter until the step that opened the scope is left.
    78 States((RunNumber, ScopeNumber)) -> StateRecord => StateRecord::content_bytes;
}

/// A state, or what a scope has written to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// An object: its keys are unique.
    pub object: Json,
    /// The keys, each with the value `null`, that a scope below the run has removed from the state of the scopes around
    /// it.
    pub removed: Vec<String>,
}

impl StateRecord {
    /// One that removes nothing.
    #[must_use]
    pub fn of(object: Json) -> Self {
        let removed = Vec::new();
        Self { object, removed }
    }

    /// Its size, in bytes.
    fn content_bytes(&self) -> usize {
        let removed = self.removed.iter().map(String::len).sum::<usize>();
        self.object.as_str().len() + removed
    }
}

/// An instance of a block below the run itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeRecord {
    /// Its number and path.
    pub id: ScopeId,
    /// The scope of the step that opened it.
    pub parent: ScopeNumber,
    /// The activation of that step.
    pub opener: u64,
    /// Its block.
    pub block: BlockIndex,
    /// Its position among the branches of the step.
    pub position: u32,
    /// How far it has come.
    pub progress: ScopeProgress,
    /// Once it is cancelled: how many steps have to end before it ends, those that are counted for a scope around it
    /// excluded (W54).
    pub cancelling: Option<u32>,
    /// Where it continues, if it has stopped and its run is resumed; `None` while it runs, and for its beginning (W89).
    pub cursor: Option<Cursor>,
}

/// How far a run or a scope below it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeProgress {
    /// The step left last.
    pub last_left: Option<StepIndex>,
    /// Steps entered or retried immediately since it last waited; for a run, including those of its children (W16).
    pub steps_since_wait: u32,
    /// Steps entered (W78).
    pub entered_count: u32,
    /// Whether it has ever waited for something from outside, or for a scope or child that has.
    pub has_waited: bool,
}

/// A scope, as an event names it: the run's history is read when the scope has long ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopeId {
    /// Its number.
    pub number: ScopeNumber,
    /// Its path.
    pub path: ScopePath,
}

/// The steps down from the run to a scope; empty for the run itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopePath(pub Box<[ScopeStep]>);

impl ScopePath {
    /// The path of a scope below this one.
    #[must_use]
    pub fn with(&self, down: ScopeStep) -> Self {
        Self(self.0.iter().copied().chain([down]).collect())
    }

    /// Whether the scope is an iteration or below one (W57).
    #[must_use]
    pub fn is_of_iteration(&self, definition: &Definition) -> bool {
        let mut openers = self.0.iter().map(|down| definition.step(down.step));
        openers.any(|opener| matches!(opener.kind, StepKind::ForEach(_)))
    }
}

impl ScopePath {
    /// The path in another definition; `None` if the scope cannot exist there.
    pub(crate) fn mapped(&self, own: &Definition, mapping: &StepMapping) -> Option<Self> {
        let steps = self.0.iter().map(|down| down.mapped(own, mapping));
        steps.collect::<Option<_>>().map(Self)
    }
}

impl ScopeStep {
    /// The step down in another definition; `None` if it does not have the step or its blocks.
    pub(crate) fn mapped(&self, own: &Definition, mapping: &StepMapping) -> Option<Self> {
        let step = mapping.step(self.step)?;
        let has_blocks = mapping.has_blocks_of(own, self.step);
        has_blocks.then_some(Self { step, ..*self })
    }
}

/// The number of steps, then the steps. A definition bounds how deep blocks nest (E520).
impl Key for ScopePath {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.0.len()).expect("blocks nest to a bounded depth"));
        for down in &self.0 {
            (down.step, down.visit, down.position).encode(out);
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let count = u8::decode(bytes)?;
        let steps = (0..count).map(|_| {
            let (step, visit, position) = Key::decode(bytes)?;
            Some(ScopeStep {
                step,
                visit,
                position,
            })
        });
        steps.collect::<Option<_>>().map(Self)
    }
}

/// One step down in the path of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopeStep {
    /// The step that opened the scope.
    pub step: StepIndex,
    /// The visit to that step, from 1.
    pub visit: u32,
    /// The position among the step's branches.
    pub position: u32,
}

/// How a branch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchResult {
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output.
    pub output: Option<PayloadRef>,
    /// Why it failed, if it did.
    pub reason: Option<String>,
    /// False if a non-retryable failure led to it (A5).
    pub is_retryable: bool,
    /// More about the failure that led to it.
    pub cause: FailureCause,
    /// Whether it was cancelled because the step was decided.
    pub is_cancelled: bool,
}
