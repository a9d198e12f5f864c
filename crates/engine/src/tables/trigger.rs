//! Triggers: streams whose records start runs (W41).

use super::{DefinitionNumber, tables};
use crate::ids::{GroupNumber, Namespace, StreamName, WorkflowName};
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};

tables! {
    /// By workflow, once one of its revisions was the latest with a trigger. Lives as long as the
    /// workflow, so that counters outlast a revision.
    59 Triggers((Namespace, WorkflowName)) -> TriggerRecord, HOT;
    /// Live triggers by the namespace and name of their stream, which may not exist. Live until the latest revision has
    /// another stream or no trigger.
    60 TriggersByStream((Namespace, StreamName, Namespace, WorkflowName)) -> ();
    /// Triggers that have records to fire, by the time from which the driver must look. Live until
    /// nothing is left to fire or the trigger is stopped.
    61 TriggersDue((u64, Namespace, WorkflowName)) -> ();
}

/// A workflow's trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// The trigger of the latest revision; `None` if it has no trigger (W5).
    pub live: Option<LiveTrigger>,
    /// Runs that it started.
    pub run_count: u64,
    /// Records that these runs began with.
    pub record_count: u64,
    /// Records whose start was refused: they went to the dead-letter stream.
    pub refused_count: u64,
    /// The last firing, in milliseconds.
    pub last_fired_ms: Option<u64>,
}

/// The trigger of the latest revision.
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
    /// Until when it starts no run since a concurrency limit is reached, in milliseconds (W84).
    pub waits_until_ms: Option<u64>,
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
        }
    }

    /// The first record that was found in a partition, if it was searched for.
    #[must_use]
    pub fn first_found(&self, partition: u32) -> Option<RecordId> {
        *self.first_found.get(usize::try_from(partition).ok()?)?
    }
}
