//! Waits for a decision (W61), which share their timer with those for a signal.

use super::rows;
use flotilla_engine::rows::{ActivationState, Activations, Decisions};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

/// Whether a step waits for a signal or a decision until then.
pub(super) fn has_deadline(state: Option<&ActivationState>, due_ms: u64) -> bool {
    let deadline_at_ms = match state {
        Some(ActivationState::Signal(wait)) => wait.deadline_at_ms,
        Some(ActivationState::Approval(approval)) => approval.deadline_at_ms,
        _ => None,
    };
    deadline_at_ms == Some(due_ms)
}

/// The decisions that are stored are those about the steps that wait for further ones.
pub(super) fn check(store: &MemoryStore) {
    let mut stored = BTreeMap::new();
    for ((run, activation, place), decision) in rows::<Decisions>(store, &()) {
        let count = stored.entry((run, activation)).or_insert(0);
        assert_eq!(place, *count, "{run:?}");
        assert!(decision.is_approved, "{run:?}");
        *count += 1;
    }
    for (key, active) in rows::<Activations>(store, &()) {
        if let ActivationState::Approval(approval) = &active.state {
            let count = stored.remove(&key).unwrap_or(0);
            assert_eq!(approval.approvals_count, count, "{key:?}");
        }
    }
    assert!(stored.is_empty(), "{stored:?}");
}
