//! Calls: the targets that a run step invokes.

use super::{PlanIndex, Setting, StepRetry, Template};
use crate::ids::{ActionName, WorkflowName, WorkflowVersion};
use serde::{Deserialize, Serialize};

/// A target, with what is passed to it and what happens when it fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// What is invoked.
    pub target: RunTarget,
    /// The `inputMapping`; without one, the target gets the run's input (W15), that of a fallback the step's (W72).
    pub input: Option<Template>,
    /// The retry policy; without one the target is tried once (W3, W12).
    pub retry: Setting<StepRetry>,
    /// How long parts of it may take (W70).
    pub timeouts: Setting<Timeouts>,
}

/// The timeouts of a call, in milliseconds; `None` without a limit (W70).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// One attempt, its polls included: from the time when a worker takes the task, or when a plan or child begins.
    pub attempt_ms: Option<u64>,
    /// All attempts, with what is between them.
    pub total_ms: Option<u64>,
    /// A task that is ready, until a worker takes it.
    pub queue_ms: Option<u64>,
    /// A task that a worker has, until its next report: it replaces the lease of the action.
    pub heartbeat_ms: Option<u64>,
}

/// Which of the calls of a step is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallRole {
    /// That of its target.
    #[default]
    Target,
    /// That of its fallback, after its target has failed (W72).
    Fallback,
    /// That of its compensation, after its target or its fallback has succeeded (W82).
    Compensation,
    /// That of the compensation of its fallback (W82).
    FallbackCompensation,
    /// That of its `onCancel`, after it was cancelled (W81).
    OnCancel,
}

impl CallRole {
    /// Whether it is made after a visit to its step has ended.
    #[must_use]
    pub fn is_after_visit(self) -> bool {
        self.is_compensation() || self.is_on_cancel()
    }

    /// Whether it is that of a step's `onCancel`.
    #[must_use]
    pub fn is_on_cancel(self) -> bool {
        self == Self::OnCancel
    }

    /// Whether it undoes another call.
    #[must_use]
    pub fn is_compensation(self) -> bool {
        match self {
            Self::Target | Self::Fallback | Self::OnCancel => false,
            Self::Compensation | Self::FallbackCompensation => true,
        }
    }
}

/// How what a call has done is undone (W82).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compensation {
    /// The call that undoes it. Its input is resolved when the other call has ended.
    pub call: Call,
    /// Whether attempts that did not succeed are undone, too.
    pub of_attempted: bool,
}

/// What a call invokes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunTarget {
    /// `@actions/NAME`.
    Action(ActionName),
    /// `@plan/NAME`, resolved.
    Plan(PlanIndex),
    /// `@workflow/NAME[:VERSION]`.
    Workflow {
        /// The child's workflow.
        name: WorkflowName,
        /// The version wanted; `None` is the latest (W5).
        version: Option<WorkflowVersion>,
    },
}
