//! The queues of ready tasks (A2, A3).
//!
//! The tasks of an action that ask for the same labels are one queue, so that an offer looks at what
//! its worker may take and at nothing else.

use super::{LabelSet, tables};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::LABEL_QUEUES_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A queue: the action and the labels that its tasks ask for.
pub type ReadyQueue = (Namespace, ActionName, LabelSet);

tables! {
    /// Tasks that a worker may take: by queue, inverted priority and age. Live until taken.
    18 Ready((Namespace, ActionName, LabelSet, u8, ActionRunNumber)) -> ();
    /// What waits of each action. Live as long as anything does, or as an action run that asks for
    /// labels is open.
    28 ReadyActions((Namespace, ActionName)) -> ReadyActionRecord, HOT;
    /// The queues of tasks that ask for labels, by action and place: few, and found without a scan.
    /// Live as long as an action run that asks for these labels is open.
    29 LabelQueues((Namespace, ActionName, u8)) -> LabelQueueRecord, HOT;
}

/// What waits of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyActionRecord {
    /// Tasks that ask for no labels.
    pub tasks_count: u64,
    /// The queues of tasks that ask for labels.
    pub label_queues: LabelQueuePlaces,
    /// Those of them in which tasks wait.
    pub label_queues_waiting: LabelQueuePlaces,
}

impl ReadyActionRecord {
    /// Whether no task waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks_count == 0 && self.label_queues_waiting == LabelQueuePlaces::default()
    }
}

/// A queue of tasks that ask for labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelQueueRecord {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Open action runs that ask for them.
    pub open_count: u64,
    /// Tasks in the queue.
    pub waiting_count: u64,
}

/// A set of the places that queues of tasks that ask for labels may have, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelQueuePlaces(u128);

const _: () = assert!(LABEL_QUEUES_MAX == u128::BITS as usize);

impl LabelQueuePlaces {
    /// The places in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..LABEL_QUEUES_MAX).filter_map(move |place| {
            let place =
                u8::try_from(place).expect("there are fewer places than a byte tells apart");
            (self.0 & Self::bit(place) != 0).then_some(place)
        })
    }

    /// The first place that is not in the set; `None` when all are.
    #[must_use]
    pub fn first_free(self) -> Option<u8> {
        let place = usize::try_from(self.0.trailing_ones()).ok()?;
        let place = (place < LABEL_QUEUES_MAX).then_some(place)?;
        u8::try_from(place).ok()
    }

    /// Adds or removes a place.
    pub fn set(&mut self, place: u8, is_there: bool) {
        if is_there {
            self.0 |= Self::bit(place);
        } else {
            self.0 &= !Self::bit(place);
        }
    }

    fn bit(place: u8) -> u128 {
        1 << place
    }
}
