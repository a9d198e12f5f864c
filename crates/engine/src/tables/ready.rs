//! The queues of ready tasks (A2, A3).
//!
//! The tasks of an action that ask for the same labels are one queue, so that an offer looks at what
//! its worker may take and at nothing else.

use super::{LabelSet, tables};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use serde::{Deserialize, Serialize};

/// A queue: the action and the labels that its tasks ask for.
pub type ReadyQueue = (Namespace, ActionName, LabelSet);

tables! {
    /// Tasks that a worker may take: by queue, inverted priority and age. Live until taken.
    18 Ready((Namespace, ActionName, LabelSet, u8, ActionRunNumber)) -> ();
    /// What waits of each action. Live as long as anything does.
    28 ReadyActions((Namespace, ActionName)) -> ReadyActionRecord, HOT;
    /// The queues of tasks that ask for labels, by action and the fingerprint of the labels: so a
    /// bounded look can begin anywhere. Live as long as a task waits in them.
    29 ReadyLabels((Namespace, ActionName, u64, LabelSet)) -> ReadyLabelsRecord;
}

/// What waits of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyActionRecord {
    /// Tasks that ask for no labels.
    pub tasks_count: u64,
    /// Queues of tasks that ask for labels.
    pub label_queues_count: u64,
}

/// What waits in one queue of tasks that ask for labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyLabelsRecord {
    /// Its tasks.
    pub tasks_count: u64,
}
