//! The queues of ready tasks (A2, A3).
//!
//! The tasks of an action that require the same labels form one queue, so that an offer reads only tasks that its
//! worker may take.

use super::{LabelSet, tables};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::LABEL_QUEUES_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A queue: the action and the labels that its tasks require.
pub type ReadyQueue = (Namespace, ActionName, LabelSet);

tables! {
    /// Tasks that a worker may take: by queue, inverted priority and age. Live until taken.
    18 Ready((Namespace, ActionName, LabelSet, u8, ActionRunNumber)) -> ();
    /// The counts of each action's waiting tasks. Live while a task waits or an action run that requires labels is
    /// open.
    28 ReadyActions((Namespace, ActionName)) -> ReadyActionRecord, HOT;
    /// The queues of tasks that require labels, by action and slot. Their number is limited, and no scan is needed to
    /// find them. Live while an action run that requires these labels is open.
    29 LabelQueues((Namespace, ActionName, u8)) -> LabelQueueRecord, HOT;
}

/// The counts of an action's waiting tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyActionRecord {
    /// Waiting tasks that require no labels.
    pub tasks_count: u64,
    /// The queues of tasks that require labels.
    pub label_queues: LabelQueueSet,
    /// Those of them in which tasks wait.
    pub label_queues_waiting: LabelQueueSet,
}

impl ReadyActionRecord {
    /// Whether no task waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks_count == 0 && self.label_queues_waiting == LabelQueueSet::default()
    }
}

/// A queue of tasks that require labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelQueueRecord {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Open action runs that require them.
    pub open_count: u64,
    /// Tasks in the queue.
    pub waiting_count: u64,
}

/// A bit set of the slots of label queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelQueueSet(u128);

const _: () = assert!(LABEL_QUEUES_MAX == u128::BITS as usize);

impl LabelQueueSet {
    /// The slots in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..LABEL_QUEUES_MAX).filter_map(move |position| {
            let position =
                u8::try_from(position).expect("there are fewer places than a byte has values");
            (self.0 & Self::bit(position) != 0).then_some(position)
        })
    }

    /// The first slot that is not in the set; `None` if all are.
    #[must_use]
    pub fn first_free(self) -> Option<u8> {
        let position = usize::try_from(self.0.trailing_ones()).ok()?;
        let position = (position < LABEL_QUEUES_MAX).then_some(position)?;
        u8::try_from(position).ok()
    }

    /// Adds or removes a slot.
    pub fn set(&mut self, position: u8, is_there: bool) {
        if is_there {
            self.0 |= Self::bit(position);
        } else {
            self.0 &= !Self::bit(position);
        }
    }

    fn bit(position: u8) -> u128 {
        1 << position
    }
}
