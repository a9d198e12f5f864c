//! The events of a visit: if there are many, the first and the last ones.

use super::event::EventView;
use crate::limits::VISIT_EVENTS_MAX;
use std::collections::VecDeque;

/// Events that are found from the last one to the first.
#[derive(Clone, Debug, Default)]
pub(super) struct VisitEvents {
    last: Vec<EventView>,
    first: VecDeque<EventView>,
    dropped_count: u64,
}

impl VisitEvents {
    /// Adds an event that lies before all others.
    pub(super) fn add(&mut self, event: EventView) {
        if self.last.len() < VISIT_EVENTS_MAX / 2 {
            self.last.push(event);
            return;
        }
        self.first.push_back(event);
        if self.first.len() > VISIT_EVENTS_MAX / 2 {
            self.first.pop_front();
            self.dropped_count += 1;
        }
    }

    /// The events that are kept, the oldest first, and how many between them are not.
    pub(super) fn in_order(self) -> (Vec<EventView>, u64) {
        let first = self.first.into_iter().rev();
        let events = first.chain(self.last.into_iter().rev());
        (events.collect(), self.dropped_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    /// The sequence numbers that are kept of `count` events.
    fn kept(count: u64) -> (Vec<u64>, u64) {
        let mut events = VisitEvents::default();
        for seq in (1..=count).rev() {
            events.add(EventView {
                seq,
                at_ms: 0,
                raft_index: 0,
                node: NodeId(1),
                term: None,
                type_name: "",
                scope: String::new(),
                step: None,
                visit: 0,
                detail: String::new(),
                attributes: String::new(),
            });
        }
        let (events, dropped_count) = events.in_order();
        let seqs = events.iter().map(|event| event.seq).collect();
        (seqs, dropped_count)
    }

    #[test]
    fn few_events_are_all_kept_in_their_order() {
        for count in [0, 1, 50, 51, 100] {
            assert_eq!(kept(count), ((1..=count).collect(), 0));
        }
    }

    #[test]
    fn of_many_events_the_middle_is_dropped() {
        assert_eq!(kept(101), ((1..=50).chain(52..=101).collect(), 1));
        assert_eq!(kept(1_000), ((1..=50).chain(951..=1_000).collect(), 900));
    }
}
