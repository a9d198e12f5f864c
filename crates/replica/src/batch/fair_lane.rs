//! The waiting commands of one class, shared fairly between the namespaces.
//!
//! Each namespace has its own queue, and the commands of the cluster share one. They take turns by deficit round robin, in
//! bytes: a namespace that sends much waits for itself, not the others for it. If the lane is full, the namespace with
//! the most waiting commands loses its newest ones to one that has fewer.

use crate::batch::queue::Submission;
use flotilla_engine::CommandScope;
use std::collections::{HashMap, VecDeque};

/// What a namespace may take in one turn. In bytes.
const TURN_BYTES: usize = 16 << 10;
/// What a command costs beside its weight: small commands take time, too. In bytes.
const COMMAND_BYTES: usize = 512;

/// The waiting commands of one class.
#[derive(Default)]
pub(super) struct FairLane {
    by_scope: HashMap<CommandScope, ScopeQueue>,
    /// The scopes of waiting commands, in the order of their turns.
    turns: VecDeque<CommandScope>,
    count: usize,
    bytes: usize,
}

/// The waiting commands of a namespace, in the order of their arrival. Invariant: not empty.
struct ScopeQueue {
    submissions: VecDeque<Submission>,
    cost: usize,
    /// What it may still take in its turn. In bytes.
    credit: usize,
}

/// What a command costs its namespace. In bytes.
fn cost(submission: &Submission) -> usize {
    submission.weight() + COMMAND_BYTES
}

impl FairLane {
    /// How many commands wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The size of the waiting commands. In bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a command to those of its namespace, at its place by arrival.
    pub(super) fn add(&mut self, submission: Submission) {
        self.count += 1;
        self.bytes += submission.bytes;
        let scope = &submission.envelope.command.scope;
        if let Some(queue) = self.by_scope.get_mut(scope) {
            queue.add(submission);
            return;
        }
        let scope = scope.clone();
        let mut queue = ScopeQueue {
            submissions: VecDeque::new(),
            cost: 0,
            credit: TURN_BYTES,
        };
        queue.add(submission);
        self.turns.push_back(scope.clone());
        self.by_scope.insert(scope, queue);
    }

    /// The command that [`Self::pop`] returns.
    pub(super) fn front(&mut self) -> Option<&Submission> {
        loop {
            let scope = self.turns.front()?;
            let queue = self.by_scope.get_mut(scope);
            let queue = queue.expect("what has a turn has commands");
            if queue.submissions.front().map_or(0, cost) <= queue.credit {
                break;
            }
            queue.credit += TURN_BYTES;
            self.turns.rotate_left(1);
        }
        let scope = self.turns.front()?;
        self.by_scope.get(scope)?.submissions.front()
    }

    /// Takes the next command.
    pub(super) fn pop(&mut self) -> Option<Submission> {
        self.front()?;
        let scope = self.turns.front()?;
        let queue = self.by_scope.get_mut(scope)?;
        let submission = queue.submissions.pop_front()?;
        queue.cost -= cost(&submission);
        queue.credit -= cost(&submission);
        if queue.submissions.is_empty() {
            self.by_scope.remove(scope);
            self.turns.pop_front();
        }
        self.removed(&submission);
        Some(submission)
    }

    /// Takes the newest command of the namespace whose commands cost most, unless that of `arriving` would cost no less.
    pub(super) fn pop_for(&mut self, arriving: &Submission) -> Option<Submission> {
        let own = self.by_scope.get(&arriving.envelope.command.scope);
        let own = own.map_or(0, |queue| queue.cost) + cost(arriving);
        let costliest = self.by_scope.iter().max_by_key(|(_, queue)| queue.cost);
        let (scope, _) = costliest.filter(|(_, queue)| queue.cost > own)?;
        let scope = scope.clone();
        let queue = self.by_scope.get_mut(&scope)?;
        let submission = queue.submissions.pop_back()?;
        queue.cost -= cost(&submission);
        if queue.submissions.is_empty() {
            self.by_scope.remove(&scope);
            self.turns.retain(|one| *one != scope);
        }
        self.removed(&submission);
        Some(submission)
    }

    /// Drops the commands that were withdrawn, and returns their size and weight together. In bytes.
    pub(super) fn drop_withdrawn(&mut self) -> usize {
        let (count_before, mut weight) = (self.count, 0);
        self.by_scope.retain(|_, queue| {
            let ScopeQueue {
                submissions,
                cost: queue_cost,
                ..
            } = queue;
            submissions.retain(|submission| {
                let is_withdrawn = submission.ticket.is_withdrawn();
                if is_withdrawn {
                    *queue_cost -= cost(submission);
                    self.count -= 1;
                    self.bytes -= submission.bytes;
                    weight += submission.weight();
                }
                !is_withdrawn
            });
            !submissions.is_empty()
        });
        if self.count < count_before {
            let by_scope = &self.by_scope;
            self.turns.retain(|one| by_scope.contains_key(one));
        }
        weight
    }

    /// The waiting commands by namespace: how many, and their size in bytes.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&CommandScope, usize, usize)> {
        self.by_scope.iter().map(|(scope, queue)| {
            let bytes = queue.submissions.iter().map(|submission| submission.bytes);
            (scope, queue.submissions.len(), bytes.sum())
        })
    }

    fn removed(&mut self, submission: &Submission) {
        self.count -= 1;
        self.bytes -= submission.bytes;
    }
}

impl ScopeQueue {
    fn add(&mut self, submission: Submission) {
        self.cost += cost(&submission);
        let place = self
            .submissions
            .iter()
            .rposition(|one| one.arrival < submission.arrival);
        self.submissions
            .insert(place.map_or(0, |before| before + 1), submission);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::queue::Arrival;
    use crate::testing::command;
    use flotilla_engine::Admission;
    use flotilla_engine::ids::Namespace;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    fn submission(namespace: &str, bytes: usize) -> Submission {
        let mut command = command(Admission::Intake);
        command.scope = Namespace::new(namespace).expect("a name").into();
        let (result_sender, _) = oneshot::channel();
        Submission {
            envelope: command.by_anyone(),
            bytes,
            ticket: Arc::default(),
            result_sender,
            arrival: Arrival::default(),
        }
    }

    fn lane(waiting: &[(&str, usize, usize)]) -> FairLane {
        let mut lane = FairLane::default();
        for (namespace, count, bytes) in waiting {
            for _ in 0..*count {
                lane.add(submission(namespace, *bytes));
            }
        }
        lane
    }

    /// The namespaces of the next commands.
    fn taken(lane: &mut FairLane, count: usize) -> Vec<String> {
        let taken = (0..count).filter_map(|_| lane.pop());
        taken
            .map(|one| one.envelope.command.scope.as_str().to_owned())
            .collect()
    }

    #[test]
    fn a_namespace_waits_for_one_turn_of_each_other_however_much_they_send() {
        let mut lane = lane(&[
            ("noisy", 5_000, 100),
            ("loud", 5_000, 100),
            ("quiet", 1, 100),
        ]);
        let turn = TURN_BYTES / cost(&submission("noisy", 100));
        let taken = taken(&mut lane, 2 * turn + 1);
        assert_eq!(taken[0], "noisy");
        assert_eq!(taken[turn], "loud");
        assert_eq!(taken[2 * turn], "quiet");
    }

    #[test]
    fn namespaces_share_bytes_not_commands() {
        let mut lane = lane(&[("large", 400, 10_000), ("small", 40_000, 100)]);
        let (mut large, mut small) = (0, 0);
        while large + small < 2 << 20 {
            let one = lane.pop().expect("both have more");
            match one.envelope.command.scope.as_str() {
                "large" => large += cost(&one),
                _ => small += cost(&one),
            }
        }
        assert!(large.abs_diff(small) <= 2 * TURN_BYTES, "{large} {small}");
    }

    #[test]
    fn a_command_larger_than_a_turn_is_taken_once_its_namespace_has_the_credit() {
        let mut lane = lane(&[("large", 1, 10 * TURN_BYTES), ("small", 10_000, 100)]);
        let position = taken(&mut lane, 1_000);
        let position = position.iter().position(|one| one == "large");
        assert!(position.is_some_and(|at| at > 100), "{position:?}");
        assert_eq!(lane.len(), 9_001);
    }

    #[test]
    fn the_costliest_namespace_loses_its_newest_command_to_one_with_fewer() {
        let mut lane = lane(&[("noisy", 3, 100), ("quiet", 1, 100)]);
        let mut lost = |namespace: &str| {
            let lost = lane.pop_for(&submission(namespace, 100));
            lost.map(|one| one.envelope.command.scope.as_str().to_owned())
        };
        assert_eq!(lost("noisy"), None, "it has more than its share");
        assert_eq!(lost("new").as_deref(), Some("noisy"));
        assert_eq!(lost("quiet"), None, "they would have the same");
        assert_eq!((lane.len(), lane.bytes()), (3, 300));
        assert_eq!(taken(&mut lane, 9), ["noisy", "noisy", "quiet"]);
        assert!(lane.is_empty() && lane.turns.is_empty());
    }

    #[test]
    fn withdrawn_commands_leave_the_lane() {
        let mut lane = lane(&[("one", 2, 100), ("other", 1, 100)]);
        let withdrawn = submission("gone", 100);
        let weight = withdrawn.weight();
        assert!(withdrawn.ticket.withdraw());
        lane.add(withdrawn);
        assert_eq!(lane.drop_withdrawn(), weight);
        assert_eq!((lane.len(), lane.bytes(), lane.turns.len()), (3, 300, 2));
    }
}
