//! Dead letters have their inputs, and are counted (A6).

use super::rows;
use flotilla_engine::store::MemoryStore;
use flotilla_engine::tables::{DeadLetterInputs, DeadLetterQueues, DeadLetters};
use std::collections::BTreeMap;

/// Panics unless every letter has its input and is counted.
pub(super) fn check(store: &MemoryStore) {
    let letters = rows::<DeadLetters>(store, &());
    let inputs = rows::<DeadLetterInputs>(store, &()).into_iter();
    let keys = letters.iter().map(|(key, _)| key);
    assert!(
        inputs.map(|(key, _)| key).eq(keys.cloned()),
        "letters and inputs"
    );
    let mut counted = BTreeMap::new();
    for ((namespace, action, _), _) in letters {
        *counted.entry((namespace, action)).or_default() += 1;
    }
    for (queue, counts) in rows::<DeadLetterQueues>(store, &()) {
        let found: u64 = counted.remove(&queue).unwrap_or_default();
        assert_eq!(counts.letters_count, found, "the letters of {}", queue.1);
    }
    assert!(counted.is_empty(), "{counted:?} are not counted");
}
