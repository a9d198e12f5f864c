//! Permits to use a resource that is limited on each node, shared by the namespaces.

use flotilla_engine::ids::Namespace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The permits that each namespace holds, and their limits.
#[derive(Debug)]
struct NamespaceCounts {
    unreserved_max: usize,
    total_max: usize,
    total: usize,
    /// Only namespaces that hold any.
    by_namespace: BTreeMap<Namespace, usize>,
}

impl NamespaceCounts {
    /// Counts of zero, with these limits.
    fn new(unreserved_max: usize, total_max: usize) -> Self {
        Self {
            unreserved_max,
            total_max,
            total: 0,
            by_namespace: BTreeMap::new(),
        }
    }

    /// Whether the namespace has reached its limit.
    fn is_full_for(&self, namespace: &Namespace) -> bool {
        let (others, own) = match self.by_namespace.get(namespace) {
            Some(own) => (self.by_namespace.len() - 1, *own),
            None => (self.by_namespace.len(), 0),
        };
        // At least one, even if there are more namespaces than permits.
        let share = (self.unreserved_max / (others + 1)).max(1);
        self.total >= self.unreserved_max && (own >= share || self.total >= self.total_max)
    }

    /// Counts another one.
    fn add(&mut self, namespace: &Namespace) {
        self.total += 1;
        *self.by_namespace.entry(namespace.clone()).or_default() += 1;
    }

    /// Counts one less.
    fn remove(&mut self, namespace: &Namespace) {
        self.total -= 1;
        if let Some(count) = self.by_namespace.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }
}

/// Permits, limited by namespace; dropping a [`NamespacePermit`] returns it.
///
/// Any namespace may hold all of `unreserved_max`. Above that, a namespace gets more only while it has fewer than
/// `unreserved_max` divided by the number of namespaces that hold any, up to `total_max` in total.
#[derive(Clone, Debug)]
pub(crate) struct NamespacePermits {
    // A std mutex: it is never held across an await.
    counts: Arc<Mutex<NamespaceCounts>>,
}

/// A permit that a namespace holds until this is dropped.
#[derive(Debug)]
pub(crate) struct NamespacePermit {
    namespace: Namespace,
    all: NamespacePermits,
}

impl NamespacePermits {
    /// No permit is held yet.
    pub(crate) fn new(unreserved_max: usize, total_max: usize) -> Self {
        Self {
            counts: Arc::new(Mutex::new(NamespaceCounts::new(unreserved_max, total_max))),
        }
    }

    /// Acquires a permit; `None` if the namespace has reached its limit.
    pub(crate) fn acquire(&self, namespace: &Namespace) -> Option<NamespacePermit> {
        let mut counts = self.lock();
        if counts.is_full_for(namespace) {
            return None;
        }
        counts.add(namespace);
        Some(NamespacePermit {
            namespace: namespace.clone(),
            all: self.clone(),
        })
    }

    /// How many permits are held.
    pub(crate) fn held_count(&self) -> usize {
        self.lock().total
    }

    /// How many permits each namespace holds; only those that hold any.
    pub(crate) fn held_by_namespace(&self) -> BTreeMap<Namespace, usize> {
        self.lock().by_namespace.clone()
    }

    fn lock(&self) -> MutexGuard<'_, NamespaceCounts> {
        // Nothing under the lock panics halfway.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NamespacePermit {
    fn drop(&mut self) {
        self.all.lock().remove(&self.namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_uses_up_the_permits_leaves_others_their_share() {
        let permits = NamespacePermits::new(10, 16);
        let take = |name: &str| permits.acquire(&Namespace::new(name.to_owned()).expect("a name"));
        let mut noisy: Vec<_> = (0..).map_while(|_| take("noisy")).collect();
        assert_eq!(noisy.len(), 10);
        let quiet: Vec<_> = (0..).map_while(|_| take("quiet")).collect();
        assert_eq!(quiet.len(), 5);
        noisy.truncate(4);
        assert!(take("noisy").is_some());
        let many: Vec<_> = (0..).map_while(|n| take(&format!("n-{n}"))).collect();
        assert_eq!(
            quiet.len() + noisy.len() + many.len(),
            16,
            "each gets one, while there are any"
        );
        drop((noisy, quiet, many));
        assert!(permits.held_count() == 0 && permits.held_by_namespace().is_empty());
    }
}
