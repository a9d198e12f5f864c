//! The actions for which tasks may wait that found no offer.
//!
//! A task that finds no offer in its entry waits in the queue of its action. This module remembers
//! that one may wait, until the state says otherwise. An action is *due* for a scan when a poll for
//! it also has a free slot, and again only when there is a new task or a new slot: tasks that no
//! worker can take, because of their labels, cost nothing until something changes.

use super::poll::ActionKey;
use std::collections::{BTreeMap, BTreeSet};

/// The result of an action's scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanResult {
    /// No task waits.
    NoneReady,
    /// Tasks wait, but none that fits a free slot.
    NoneFitting,
    /// Tasks were assigned, and others may be left.
    MayBeLeft,
}

/// The actions that open polls take.
#[derive(Default)]
pub(super) struct PendingActions {
    actions: BTreeMap<ActionKey, PendingAction>,
    due: BTreeSet<ActionKey>,
}

/// The state of one action.
#[derive(Default)]
struct PendingAction {
    /// The open polls that take it.
    polls: BTreeSet<u64>,
    /// Whether tasks may wait.
    may_wait: bool,
    /// Whether a scan is running: it may miss what arrives meanwhile.
    is_scanned: bool,
}

impl PendingActions {
    /// A poll takes the actions from now on. Tasks may already wait for it: only the state knows.
    pub(super) fn join(&mut self, keys: &[ActionKey], number: u64) {
        for key in keys {
            let pending_action = self.actions.entry(key.clone()).or_default();
            pending_action.polls.insert(number);
            pending_action.may_wait = true;
        }
    }

    /// A poll has ended.
    pub(super) fn leave(&mut self, keys: &[ActionKey], number: u64) {
        for key in keys {
            let Some(pending_action) = self.actions.get_mut(key) else {
                continue;
            };
            pending_action.polls.remove(&number);
            if pending_action.polls.is_empty() {
                self.actions.remove(key);
                self.due.remove(key);
            }
        }
    }

    /// The open polls that take the action.
    pub(super) fn polls(&self, key: &ActionKey) -> impl Iterator<Item = u64> {
        let pending_action = self.actions.get(key);
        pending_action
            .into_iter()
            .flat_map(|pending_action| pending_action.polls.iter().copied())
    }

    /// A poll that takes the actions has a free slot.
    pub(super) fn slot_freed(&mut self, keys: &[ActionKey]) {
        for key in keys {
            if let Some(pending_action) = self.actions.get(key)
                && (pending_action.may_wait || pending_action.is_scanned)
            {
                self.due.insert(key.clone());
            }
        }
    }

    /// A task of the action waits because no offer fitted it.
    pub(super) fn task_waits(&mut self, key: &ActionKey, is_free: impl Fn(u64) -> bool) {
        if let Some(pending_action) = self.actions.get_mut(key) {
            pending_action.may_wait = true;
            if pending_action.polls.iter().copied().any(is_free) {
                self.due.insert(key.clone());
            }
        }
    }

    /// The actions for which tasks may wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &ActionKey> {
        let waits =
            |pending_action: &PendingAction| pending_action.may_wait || pending_action.is_scanned;
        let actions = self.actions.iter();
        actions
            .filter(move |(_, one)| waits(one))
            .map(|(key, _)| key)
    }

    /// Whether a scan of some action is due.
    pub(super) fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The actions to scan; an action that is being scanned has to wait.
    pub(super) fn take_due(&mut self) -> Vec<ActionKey> {
        let mut taken = Vec::new();
        for key in &self.due {
            if let Some(pending_action) = self.actions.get_mut(key)
                && !pending_action.is_scanned
            {
                pending_action.is_scanned = true;
                pending_action.may_wait = false;
                taken.push(key.clone());
            }
        }
        for key in &taken {
            self.due.remove(key);
        }
        taken
    }

    /// Records the result of a scan.
    pub(super) fn record_scan(
        &mut self,
        key: &ActionKey,
        scan_result: ScanResult,
        is_free: impl Fn(u64) -> bool,
    ) {
        let Some(pending_action) = self.actions.get_mut(key) else {
            return;
        };
        pending_action.is_scanned = false;
        match scan_result {
            ScanResult::NoneReady => {}
            ScanResult::NoneFitting => pending_action.may_wait = true,
            ScanResult::MayBeLeft => self.task_waits(key, is_free),
        }
    }

    /// The scanner is gone: every action is scanned again.
    pub(super) fn forget_scans(&mut self, is_free: impl Fn(u64) -> bool) {
        for (key, pending_action) in &mut self.actions {
            pending_action.is_scanned = false;
            pending_action.may_wait = true;
            if pending_action.polls.iter().copied().any(&is_free) {
                self.due.insert(key.clone());
            }
        }
    }

    /// Clears everything.
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

    /// An action that a poll takes, after a first scan with this result.
    fn record_scan(scan_result: ScanResult) -> PendingActions {
        let mut pending_actions = PendingActions::default();
        pending_actions.join(&[key()], FIRST);
        pending_actions.slot_freed(&[key()]);
        assert_eq!(pending_actions.take_due(), [key()]);
        pending_actions.record_scan(&key(), scan_result, all_free);
        pending_actions
    }

    #[test]
    fn slots_alone_make_nothing_due_when_no_task_waits() {
        let mut pending_actions = record_scan(ScanResult::NoneReady);
        pending_actions.slot_freed(&[key()]);
        assert!(!pending_actions.is_any_due());
    }

    #[test]
    fn an_action_without_fitting_tasks_is_not_scanned_until_a_slot_or_a_task_comes() {
        let mut pending_actions = record_scan(ScanResult::NoneFitting);
        assert!(!pending_actions.is_any_due());
        pending_actions.slot_freed(&[key()]);
        assert_eq!(pending_actions.take_due(), [key()]);
        pending_actions.record_scan(&key(), ScanResult::NoneFitting, all_free);
        assert!(!pending_actions.is_any_due());
        pending_actions.task_waits(&key(), all_free);
        assert_eq!(pending_actions.take_due(), [key()]);
    }

    #[test]
    fn after_tasks_were_given_away_more_may_be_left() {
        let mut pending_actions = record_scan(ScanResult::MayBeLeft);
        assert_eq!(pending_actions.take_due(), [key()]);
        pending_actions.record_scan(&key(), ScanResult::MayBeLeft, |_| false);
        assert!(!pending_actions.is_any_due());
        pending_actions.slot_freed(&[key()]);
        assert_eq!(pending_actions.take_due(), [key()]);
    }

    #[test]
    fn a_task_without_a_free_slot_is_remembered_until_one_comes() {
        let mut pending_actions = record_scan(ScanResult::NoneReady);
        pending_actions.task_waits(&key(), |_| false);
        assert!(!pending_actions.is_any_due());
        pending_actions.slot_freed(&[key()]);
        assert_eq!(pending_actions.take_due(), [key()]);
    }

    #[test]
    fn what_arrives_during_a_scan_is_not_missed() {
        let events: [fn(&mut PendingActions); 2] = [
            |pending_actions| pending_actions.task_waits(&key(), all_free),
            |pending_actions| pending_actions.slot_freed(&[key()]),
        ];
        for comes in events {
            let mut pending_actions = record_scan(ScanResult::MayBeLeft);
            assert_eq!(pending_actions.take_due(), [key()]);
            comes(&mut pending_actions);
            assert_eq!(pending_actions.take_due(), [], "one scan at a time");
            pending_actions.record_scan(&key(), ScanResult::NoneFitting, all_free);
            assert_eq!(pending_actions.take_due(), [key()]);
        }
    }

    #[test]
    fn scans_that_were_abandoned_start_again() {
        let mut pending_actions = record_scan(ScanResult::MayBeLeft);
        assert_eq!(pending_actions.take_due(), [key()]);
        pending_actions.forget_scans(all_free);
        assert_eq!(pending_actions.take_due(), [key()]);
    }

    #[test]
    fn an_action_is_forgotten_with_its_last_poll() {
        let mut pending_actions = record_scan(ScanResult::MayBeLeft);
        pending_actions.join(&[key()], SECOND);
        pending_actions.leave(&[key()], FIRST);
        assert_eq!(pending_actions.polls(&key()).collect::<Vec<_>>(), [SECOND]);
        assert!(pending_actions.is_any_due());
        pending_actions.leave(&[key()], SECOND);
        assert!(!pending_actions.is_any_due() && pending_actions.actions.is_empty());
    }
}
