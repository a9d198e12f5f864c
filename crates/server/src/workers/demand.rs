//! For which actions tasks may wait that no entry gave to a poll.
//!
//! A task that finds no offer in its entry waits in the queue of its action. Here is remembered
//! that one may wait, until the state says otherwise. An action is *due* for a look when besides
//! some poll for it has a free slot, and again only when there is a new task or a new slot: tasks
//! that nobody can take, by their labels, cost nothing until something happens.

use super::poll::ActionKey;
use std::collections::{BTreeMap, BTreeSet};

/// What a look at an action brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// No task waits.
    NoneReady,
    /// Tasks wait, but none that fits a free slot.
    NoneFitting,
    /// Tasks were given away, and others may be left.
    MayBeLeft,
}

/// The actions that open polls take.
#[derive(Default)]
pub(super) struct Demands {
    actions: BTreeMap<ActionKey, Demand>,
    due: BTreeSet<ActionKey>,
}

/// What is known of one action.
#[derive(Default)]
struct Demand {
    /// The open polls that take it.
    polls: BTreeSet<u64>,
    /// Whether tasks may wait.
    may_wait: bool,
    /// Whether somebody looks: what comes meanwhile may have been missed.
    is_looked_at: bool,
}

impl Demands {
    /// A poll takes the actions from now on. Tasks may wait for it already: only the state knows.
    pub(super) fn join(&mut self, keys: &[ActionKey], number: u64) {
        for key in keys {
            let demand = self.actions.entry(key.clone()).or_default();
            demand.polls.insert(number);
            demand.may_wait = true;
        }
    }

    /// A poll has ended.
    pub(super) fn leave(&mut self, keys: &[ActionKey], number: u64) {
        for key in keys {
            let Some(demand) = self.actions.get_mut(key) else {
                continue;
            };
            demand.polls.remove(&number);
            if demand.polls.is_empty() {
                self.actions.remove(key);
                self.due.remove(key);
            }
        }
    }

    /// The open polls that take the action.
    pub(super) fn polls(&self, key: &ActionKey) -> impl Iterator<Item = u64> {
        let demand = self.actions.get(key);
        demand
            .into_iter()
            .flat_map(|demand| demand.polls.iter().copied())
    }

    /// A poll that takes the actions has a free slot.
    pub(super) fn slot_came(&mut self, keys: &[ActionKey]) {
        for key in keys {
            if let Some(demand) = self.actions.get(key)
                && (demand.may_wait || demand.is_looked_at)
            {
                self.due.insert(key.clone());
            }
        }
    }

    /// A task of the action waits that no offer was there for.
    pub(super) fn task_waits(&mut self, key: &ActionKey, is_free: impl Fn(u64) -> bool) {
        if let Some(demand) = self.actions.get_mut(key) {
            demand.may_wait = true;
            if demand.polls.iter().copied().any(is_free) {
                self.due.insert(key.clone());
            }
        }
    }

    /// Whether a look at some action is due.
    pub(super) fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The actions to look at; one that somebody looks at already has to wait.
    pub(super) fn take_due(&mut self) -> Vec<ActionKey> {
        let mut taken = Vec::new();
        for key in &self.due {
            if let Some(demand) = self.actions.get_mut(key)
                && !demand.is_looked_at
            {
                demand.is_looked_at = true;
                demand.may_wait = false;
                taken.push(key.clone());
            }
        }
        for key in &taken {
            self.due.remove(key);
        }
        taken
    }

    /// Books what a look brought.
    pub(super) fn looked(
        &mut self,
        key: &ActionKey,
        looked: Looked,
        is_free: impl Fn(u64) -> bool,
    ) {
        let Some(demand) = self.actions.get_mut(key) else {
            return;
        };
        demand.is_looked_at = false;
        match looked {
            Looked::NoneReady => {}
            Looked::NoneFitting => demand.may_wait = true,
            Looked::MayBeLeft => self.task_waits(key, is_free),
        }
    }

    /// Whoever looked is gone: every action is looked at anew.
    pub(super) fn forget_looks(&mut self, is_free: impl Fn(u64) -> bool) {
        for (key, demand) in &mut self.actions {
            demand.is_looked_at = false;
            demand.may_wait = true;
            if demand.polls.iter().copied().any(&is_free) {
                self.due.insert(key.clone());
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::{ActionName, Namespace};

    const FIRST: u64 = 1;
    const SECOND: u64 = 2;

    fn key() -> ActionKey {
        let action = ActionName::new("charge").unwrap();
        (Namespace::default_namespace(), action)
    }

    fn all_free(_: u64) -> bool {
        true
    }

    /// Demands for an action that a poll takes, after a first look that brought this.
    fn looked(looked: Looked) -> Demands {
        let mut demands = Demands::default();
        demands.join(&[key()], FIRST);
        demands.slot_came(&[key()]);
        assert_eq!(demands.take_due(), [key()]);
        demands.looked(&key(), looked, all_free);
        demands
    }

    #[test]
    fn slots_alone_make_nothing_due_when_no_task_waits() {
        let mut demands = looked(Looked::NoneReady);
        demands.slot_came(&[key()]);
        assert!(!demands.is_any_due());
    }

    #[test]
    fn tasks_that_fit_nobody_are_not_asked_about_until_a_slot_or_a_task_comes() {
        let mut demands = looked(Looked::NoneFitting);
        assert!(!demands.is_any_due());
        demands.slot_came(&[key()]);
        assert_eq!(demands.take_due(), [key()]);
        demands.looked(&key(), Looked::NoneFitting, all_free);
        assert!(!demands.is_any_due());
        demands.task_waits(&key(), all_free);
        assert_eq!(demands.take_due(), [key()]);
    }

    #[test]
    fn after_tasks_were_given_away_more_may_be_left() {
        let mut demands = looked(Looked::MayBeLeft);
        assert_eq!(demands.take_due(), [key()]);
        demands.looked(&key(), Looked::MayBeLeft, |_| false);
        assert!(!demands.is_any_due());
        demands.slot_came(&[key()]);
        assert_eq!(demands.take_due(), [key()]);
    }

    #[test]
    fn a_task_without_a_free_slot_is_remembered_until_one_comes() {
        let mut demands = looked(Looked::NoneReady);
        demands.task_waits(&key(), |_| false);
        assert!(!demands.is_any_due());
        demands.slot_came(&[key()]);
        assert_eq!(demands.take_due(), [key()]);
    }

    #[test]
    fn what_comes_while_somebody_looks_is_not_missed() {
        let events: [fn(&mut Demands); 2] = [
            |demands| demands.task_waits(&key(), all_free),
            |demands| demands.slot_came(&[key()]),
        ];
        for comes in events {
            let mut demands = looked(Looked::MayBeLeft);
            assert_eq!(demands.take_due(), [key()]);
            comes(&mut demands);
            assert_eq!(demands.take_due(), [], "one look at a time");
            demands.looked(&key(), Looked::NoneFitting, all_free);
            assert_eq!(demands.take_due(), [key()]);
        }
    }

    #[test]
    fn looks_that_were_given_up_begin_anew() {
        let mut demands = looked(Looked::MayBeLeft);
        assert_eq!(demands.take_due(), [key()]);
        demands.forget_looks(all_free);
        assert_eq!(demands.take_due(), [key()]);
    }

    #[test]
    fn an_action_is_forgotten_with_its_last_poll() {
        let mut demands = looked(Looked::MayBeLeft);
        demands.join(&[key()], SECOND);
        demands.leave(&[key()], FIRST);
        assert_eq!(demands.polls(&key()).collect::<Vec<_>>(), [SECOND]);
        assert!(demands.is_any_due());
        demands.leave(&[key()], SECOND);
        assert!(!demands.is_any_due() && demands.actions.is_empty());
    }
}
