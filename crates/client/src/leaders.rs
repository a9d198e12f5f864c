//! The leaders that a client remembers, by namespace.
//!
//! A namespace lives in one Raft group, whose leader serves its calls without a further hop. A cluster with one group has
//! one leader, so a client that uses several namespaces must not look for it in each: a namespace without a remembered
//! leader has the one that was learned last, and namespaces whose leader was the same node move together. If that is
//! wrong, the call takes one more hop, and its response names the right leader.

use std::collections::HashMap;

/// The namespaces whose leaders are remembered. Beyond that, all are forgotten and learned again.
const NAMESPACES_MAX: usize = 1_024;

/// What a request without a namespace means.
const DEFAULT_NAMESPACE: &str = "default";

/// The remembered leaders, as positions in the list of nodes.
#[derive(Debug, Default)]
pub(crate) struct Leaders {
    by_namespace: HashMap<Box<str>, usize>,
    /// The leader that was learned last, of any namespace.
    last: Option<usize>,
}

/// The name under which a leader is remembered. What acts on the cluster as a whole has the empty one.
fn key(namespace: Option<&str>) -> &str {
    match namespace {
        None => "",
        Some("") => DEFAULT_NAMESPACE,
        Some(namespace) => namespace,
    }
}

impl Leaders {
    /// The presumed leader of the namespace; of the cluster as a whole for `None`.
    pub(crate) fn of(&self, namespace: Option<&str>) -> Option<usize> {
        let known = self.by_namespace.get(key(namespace)).copied();
        known.or(self.last)
    }

    /// Learns the leader of the namespace. Allocates only if the namespace is new.
    pub(crate) fn learn(&mut self, namespace: Option<&str>, position: usize) {
        self.last = Some(position);
        let former = match self.by_namespace.get_mut(key(namespace)) {
            Some(known) => std::mem::replace(known, position),
            None => {
                if self.by_namespace.len() >= NAMESPACES_MAX {
                    self.by_namespace.clear();
                }
                self.by_namespace.insert(key(namespace).into(), position);
                return;
            }
        };
        if former != position {
            let of_former = self.by_namespace.values_mut();
            of_former
                .filter(|known| **known == former)
                .for_each(|known| *known = position);
        }
    }

    /// Forgets that this node leads anything.
    pub(crate) fn forget(&mut self, position: usize) {
        self.last = self.last.filter(|last| *last != position);
        self.by_namespace.retain(|_, leader| *leader != position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: Option<&str> = Some("shop");
    const BANK: Option<&str> = Some("bank");

    #[test]
    fn each_namespace_has_its_own_leader() {
        let mut leaders = Leaders::default();
        assert_eq!(leaders.of(SHOP), None);
        leaders.learn(SHOP, 1);
        leaders.learn(BANK, 2);
        leaders.learn(None, 0);
        assert_eq!(leaders.of(SHOP), Some(1));
        assert_eq!(leaders.of(BANK), Some(2));
        assert_eq!(leaders.of(None), Some(0));
    }

    #[test]
    fn an_empty_name_is_that_of_the_default_namespace() {
        let mut leaders = Leaders::default();
        leaders.learn(Some(""), 1);
        leaders.learn(None, 2);
        assert_eq!(leaders.of(Some("default")), Some(1));
        assert_eq!(leaders.of(None), Some(2));
    }

    #[test]
    fn a_namespace_without_a_leader_has_the_one_that_was_learned_last() {
        let mut leaders = Leaders::default();
        leaders.learn(SHOP, 1);
        assert_eq!(leaders.of(BANK), Some(1));
        assert_eq!(leaders.of(None), Some(1));
    }

    #[test]
    fn namespaces_of_one_leader_move_together() {
        let mut leaders = Leaders::default();
        leaders.learn(SHOP, 1);
        leaders.learn(BANK, 1);
        leaders.learn(None, 3);
        leaders.learn(SHOP, 2);
        assert_eq!(leaders.of(BANK), Some(2));
        assert_eq!(leaders.of(None), Some(3));
    }

    #[test]
    fn a_node_that_does_not_serve_leads_nothing() {
        let mut leaders = Leaders::default();
        leaders.learn(BANK, 2);
        leaders.learn(SHOP, 1);
        leaders.forget(1);
        assert_eq!(leaders.of(SHOP), None);
        assert_eq!(leaders.of(BANK), Some(2));
    }

    #[test]
    fn the_leaders_of_many_namespaces_are_bounded() {
        let mut leaders = Leaders::default();
        for number in 0..2 * NAMESPACES_MAX {
            leaders.learn(Some(&format!("n{number}")), 1);
        }
        assert!(leaders.by_namespace.len() <= NAMESPACES_MAX);
        assert_eq!(leaders.of(Some("n0")), Some(1));
    }
}
