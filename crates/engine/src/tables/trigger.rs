//! Triggers: streams whose records start runs (W41, W93).

use super::{DefinitionNumber, tables};
use crate::definition::TriggerIndex;
use crate::ids::{GroupNumber, Namespace, StreamName, WorkflowName};
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};

tables! {
    /// The triggers of each workflow's latest revision, by their position in its list. Live until the latest revision
    /// has no such trigger.
    59 Triggers((Namespace, WorkflowName, TriggerIndex)) -> TriggerRecord, HOT;
    /// Triggers by the namespace and name of their stream, which may not exist. Live as long as those.
    60 TriggersByStream((Namespace, StreamName, Namespace, WorkflowName, TriggerIndex)) -> ();
    /// Triggers that have records to fire, by the time from which the driver must look. Live until
    /// nothing is left to fire or the trigger is stopped.
    61 TriggersDue((u64, Namespace, WorkflowName, TriggerIndex)) -> ();
}

/// A trigger of a workflow's latest revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// Where it stands.
    pub live: LiveTrigger,
    /// What it has done.
    pub counts: TriggerCounts,
}

/// What a trigger has done since the workflow has had it: revisions that have it too continue to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerCounts {
    /// Since when, in milliseconds.
    pub since_ms: u64,
    /// Runs that it started.
    pub run_count: u64,
    /// Records that these runs began with.
    pub record_count: u64,
    /// Records for which its condition was false.
    pub skipped_count: u64,
    /// Records whose condition failed or whose start was refused: they went to the dead-letter stream.
    pub refused_count: u64,
    /// The last firing, in milliseconds.
    pub last_fired_ms: Option<u64>,
}

/// Where a trigger of the latest revision stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveTrigger {
    /// The revision.
    pub definition: DefinitionNumber,
    /// The consumer group that holds its cursor; `None` while the stream does not exist.
    pub group: Option<GroupNumber>,
    /// By partition: the first record found after the group's cursor, so that it is not searched for again before the
    /// group has passed it. A record before the cursor is ignored.
    pub first_found: Vec<Option<RecordId>>,
    /// From when on the driver must look, in milliseconds; `None` while there is nothing to fire.
    pub due_ms: Option<u64>,
    /// Until when it starts no run since a concurrency limit or a quota is reached, in milliseconds (W84, X39).
    pub waits_until_ms: Option<u64>,
    /// Whether it waits because of a quota.
    pub is_over_quota: bool,
}

impl LiveTrigger {
    /// The trigger of a revision, before it reads a stream.
    #[must_use]
    pub fn new(definition: DefinitionNumber) -> Self {
        Self {
            definition,
            group: None,
            first_found: Vec::new(),
            due_ms: None,
            waits_until_ms: None,
            is_over_quota: false,
        }
    }

    /// The first record that was found in a partition, if it was searched for.
    #[must_use]
    pub fn first_found(&self, partition: u32) -> Option<RecordId> {
        *self.first_found.get(usize::try_from(partition).ok()?)?
    }
}
