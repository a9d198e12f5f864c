//! Work that a turn put off because it had reached its budget (design rule 13).

use super::{Awaited, DefinitionNumber, PayloadRef, tables};
use crate::definition::{StepIndex, Target};
use crate::ids::{OutcomeName, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// By run, in the order in which it was put off. Live until the run's continuation fires.
    64 PendingWorks((RunNumber, u32)) -> Work;
}

/// Where a run's pending work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// When the timer is due that takes the work up, in milliseconds.
    pub due_ms: u64,
    /// The position of the next work that is put off.
    pub next: u32,
}

/// One piece of work on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// The run enters a step.
    Enter {
        /// The step.
        step: StepIndex,
    },
    /// A run step's target is invoked, for the first time or again.
    Execute {
        /// The activation.
        activation: u32,
    },
    /// A child run is begun for a step; its input may still need a verdict (W4).
    BeginChild {
        /// The activation.
        activation: u32,
    },
    /// The verdict on a child's input came in (W4).
    DecideChild {
        /// The activation.
        activation: u32,
        /// The definition that the input was checked against.
        definition: DefinitionNumber,
        /// What the check found.
        verdict: InputVerdict,
    },
    /// An outcome came in for an activation.
    Settle {
        /// The activation.
        activation: u32,
        /// The outcome.
        settled: Settled,
    },
    /// A child has ended.
    ChildEnded {
        /// The activation that waits for it.
        activation: u32,
        /// The child.
        child: RunNumber,
    },
    /// The run reaches a terminal.
    Finish {
        /// The terminal.
        terminal: Target,
        /// Why, where the terminal does not say.
        detail: Option<String>,
    },
    /// The run is cancelled, by a caller or with its parent (W17, W18).
    Cancel {
        /// Why.
        reason: Option<String>,
    },
}

/// What a step's target came back with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// What it comes from: the activation must still wait for exactly that.
    pub from: Awaited,
    /// The outcome.
    pub outcome: OutcomeName,
    /// The output, stored with the run.
    pub output: Option<PayloadRef>,
    /// What went wrong, in words, where the outcome does not say.
    pub reason: Option<String>,
    /// False for a failure that must skip the step's retries (A5, W12).
    pub is_retryable: bool,
}

/// What a check of an input against a schema found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputVerdict {
    /// It satisfies the schema.
    Valid,
    /// It does not.
    Invalid {
        /// The failing path and why.
        detail: String,
    },
}
