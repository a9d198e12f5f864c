//! Dead letters have their inputs, and are counted (A6).

use super::{read, rows};
use flotilla_engine::limits::{DEAD_LETTER_BYTES_OVERHEAD, DEAD_LETTERS_BYTES_MAX};
use flotilla_engine::rows::{DeadLetterInputs, DeadLetterPlaces, DeadLetterQueues, DeadLetters};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

/// Panics unless every letter has its input and is counted.
pub(super) fn check(store: &MemoryStore) {
    let dead_letters = rows::<DeadLetters>(store, &());
    let inputs = rows::<DeadLetterInputs>(store, &()).into_iter();
    let keys = dead_letters.iter().map(|(key, _)| key);
    assert!(
        inputs.map(|(key, _)| key).eq(keys.cloned()),
        "letters and inputs"
    );
    let places: Vec<_> = rows::<DeadLetterPlaces>(store, &()).into_iter().collect();
    assert_eq!(places.len(), dead_letters.len(), "places and letters");
    for ((namespace, action, action_run), place) in places {
        let dead_letter = read::<DeadLetters>(store, &(namespace, action, place));
        let dead_letter = dead_letter.expect("a place is that of a letter");
        assert_eq!(dead_letter.action_run, action_run);
    }
    let mut counted: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    let mut bytes: BTreeMap<_, u64> = BTreeMap::new();
    let mut died_at_ms = BTreeMap::new();
    for ((namespace, action, place), dead_letter) in dead_letters {
        let queue = (namespace, action);
        let before_ms = died_at_ms.insert(queue.clone(), dead_letter.died_at_ms);
        assert!(
            before_ms <= Some(dead_letter.died_at_ms),
            "letters lie in their order"
        );
        let input = read::<DeadLetterInputs>(store, &(queue.0.clone(), queue.1.clone(), place));
        let input = input.expect("a letter has its input");
        let expected = input.as_str().len() as u64 + DEAD_LETTER_BYTES_OVERHEAD;
        assert_eq!(dead_letter.bytes, expected, "what a letter counts");
        *bytes.entry(queue.clone()).or_default() += dead_letter.bytes;
        counted.entry(queue).or_default().push(place);
    }
    for (queue, counts) in rows::<DeadLetterQueues>(store, &()) {
        let found = counted.remove(&queue).unwrap_or_default();
        assert_eq!(
            counts.dead_letter_count,
            found.len() as u64,
            "the letters of {}",
            queue.1
        );
        let found_bytes = bytes.remove(&queue).unwrap_or_default();
        assert_eq!(
            counts.letters_bytes, found_bytes,
            "the bytes of {}",
            queue.1
        );
        assert!(found_bytes <= DEAD_LETTERS_BYTES_MAX);
        let first = found.first().copied().unwrap_or(counts.next_place);
        assert_eq!(counts.first_place, first, "the first of {}", queue.1);
        assert!(found.last().is_none_or(|last| *last < counts.next_place));
    }
    assert!(counted.is_empty(), "{counted:?} are not counted");
}
