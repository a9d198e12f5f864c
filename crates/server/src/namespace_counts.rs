//! Counts what each namespace uses of something that a node has a limited number of.

use flotilla_engine::ids::Namespace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many each namespace uses.
///
/// Any namespace may use all of `unshared_max`. Above that, a namespace gets more only while it has fewer than
/// `unshared_max` divided by the number of namespaces that use any, up to twice `unshared_max` in total.
#[derive(Debug)]
pub(crate) struct NamespaceCounts {
    unshared_max: usize,
    total: usize,
    /// Only namespaces that use any.
    by_namespace: BTreeMap<Namespace, usize>,
}

impl NamespaceCounts {
    /// None are used.
    pub(crate) fn new(unshared_max: usize) -> Self {
        Self {
            unshared_max,
            total: 0,
            by_namespace: BTreeMap::new(),
        }
    }

    /// How many are used in total.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// How many each namespace uses; only those that use any.
    pub(crate) fn by_namespace(&self) -> &BTreeMap<Namespace, usize> {
        &self.by_namespace
    }

    /// Whether the namespace may not use another one.
    pub(crate) fn is_full_for(&self, namespace: &Namespace) -> bool {
        let (others, own) = match self.by_namespace.get(namespace) {
            Some(own) => (self.by_namespace.len() - 1, *own),
            None => (self.by_namespace.len(), 0),
        };
        let share = self.unshared_max / (others + 1);
        self.total >= self.unshared_max && (own >= share || self.total >= 2 * self.unshared_max)
    }

    /// Counts another one.
    pub(crate) fn add(&mut self, namespace: &Namespace) {
        self.total += 1;
        *self.by_namespace.entry(namespace.clone()).or_default() += 1;
    }

    /// Counts one less.
    pub(crate) fn remove(&mut self, namespace: &Namespace) {
        self.total -= 1;
        if let Some(count) = self.by_namespace.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }
}

/// Counts that callers share: a place is free again once its [`NamespacePlace`] is dropped.
#[derive(Clone, Debug)]
pub(crate) struct NamespacePlaces {
    // A std mutex: it is never held across an await.
    counts: Arc<Mutex<NamespaceCounts>>,
}

/// One that a namespace uses until this is dropped.
#[derive(Debug)]
pub(crate) struct NamespacePlace {
    namespace: Namespace,
    places: NamespacePlaces,
}

impl NamespacePlaces {
    /// Places, all free: see [`NamespaceCounts`].
    pub(crate) fn new(unshared_max: usize) -> Self {
        Self {
            counts: Arc::new(Mutex::new(NamespaceCounts::new(unshared_max))),
        }
    }

    /// Takes a place for the namespace; `None` if there is none for it.
    pub(crate) fn take(&self, namespace: &Namespace) -> Option<NamespacePlace> {
        let mut counts = self.lock();
        if counts.is_full_for(namespace) {
            return None;
        }
        counts.add(namespace);
        Some(NamespacePlace {
            namespace: namespace.clone(),
            places: self.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, NamespaceCounts> {
        // Nothing under the lock panics halfway.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NamespacePlace {
    fn drop(&mut self) {
        self.places.lock().remove(&self.namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_uses_up_the_places_leaves_others_their_share() {
        let places = NamespacePlaces::new(10);
        let take = |name: &str| places.take(&Namespace::new(name.to_owned()).expect("a name"));
        let mut noisy: Vec<_> = (0..).map_while(|_| take("noisy")).collect();
        assert_eq!(noisy.len(), 10);
        let quiet: Vec<_> = (0..).map_while(|_| take("quiet")).collect();
        assert_eq!(quiet.len(), 5);
        noisy.truncate(4);
        assert!(take("noisy").is_some());
        drop((noisy, quiet));
        let counts = places.lock();
        assert!(counts.total() == 0 && counts.by_namespace().is_empty());
    }
}
