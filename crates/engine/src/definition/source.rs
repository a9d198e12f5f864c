//! What starts runs without a caller: schedules (W40) and stream triggers (W41).

use super::{Expression, step::index};
use crate::ids::{GroupName, Namespace, StreamName};
use serde::{Deserialize, Serialize};

/// The `schedule` block (W40).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// When it fires.
    pub timing: Timing,
    /// Open runs of this schedule at most.
    pub max_concurrent: u32,
    /// The input of its runs: compact JSON text.
    pub input: String,
    /// Whether it starts paused.
    pub paused: bool,
    /// How far back missed firings are made up, in milliseconds; 0 for never.
    pub catchup_window_ms: u64,
}

/// When a schedule fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Timing {
    /// A 5-field cron expression in a time zone. The engine never evaluates it: the next firing is computed outside
    /// `apply` and arrives in the log (design rule 1).
    Cron {
        /// The expression as written.
        expression: String,
        /// The IANA zone; `UTC` by default.
        timezone: String,
    },
    /// A fixed grid from the definition's creation.
    Interval {
        /// In milliseconds; above 0.
        every_ms: u64,
    },
}

index! {
    /// The position of a trigger in [`super::Definition::triggers`].
    TriggerIndex
}

/// An entry of `triggers`, or the `trigger` block (W41, W93). In a definition, its stream and its consumer group identify
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// The source stream.
    pub stream: StreamName,
    /// The stream's namespace; `None` is the workflow's.
    pub namespace: Option<Namespace>,
    /// The consumer group; `wf-{workflow}` by default.
    pub consumer_group: GroupName,
    /// How consumers share the stream.
    pub consumption: GroupMode,
    /// Records per run; above 1 the input is an array.
    pub batch_size: u32,
    /// When a partial batch is flushed, in milliseconds.
    pub batch_timeout_ms: u64,
    /// Which records start runs; `None` for all (W93).
    pub when: Option<Expression>,
}

impl Trigger {
    /// The namespace of its stream, if its workflow is in `own`.
    #[must_use]
    pub fn namespace<'t>(&'t self, own: &'t Namespace) -> &'t Namespace {
        self.namespace.as_ref().unwrap_or(own)
    }
}

/// A consumer group's mode (A31).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupMode {
    /// Competing consumers.
    #[default]
    Shared,
    /// A single consumer.
    Exclusive,
    /// Affinity by partition key.
    KeyShared,
}
