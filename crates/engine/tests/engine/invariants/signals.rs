//! A run counts the signals that wait for its steps, and finds each id that it remembers by its place (W19).

use super::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::limits::{SIGNAL_IDS_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX};
use flotilla_engine::rows::{RunRecord, SignalIdPlaces, SignalIds, SignalsWaiting, TakenSignals};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(store: &MemoryStore, number: RunNumber, run: &RunRecord) {
    let waiting = rows::<SignalsWaiting>(store, &number).into_iter();
    let waiting = waiting.map(|((_, _, _, place), signal)| (place, signal));
    // A signal that nested blocks have taken has a row for each.
    let taken = rows::<TakenSignals>(store, &number).into_iter();
    let taken: BTreeMap<_, _> = taken
        .map(|((_, _, place), taken)| (place, taken.signal))
        .collect();
    let kept: Vec<_> = waiting.chain(taken).collect();
    let counts = &run.signals;
    assert_eq!(counts.kept_count as usize, kept.len(), "{}", run.id);
    let mut bytes = 0;
    for (_, signal) in &kept {
        let payload = view::payload(store, signal.payload).expect("memory does not fail");
        assert_eq!(signal.bytes as usize, payload.as_str().len(), "{}", run.id);
        bytes += u64::from(signal.bytes);
    }
    assert_eq!(counts.kept_bytes, bytes, "{}", run.id);
    assert!(counts.kept_count <= SIGNALS_KEPT_MAX, "{}", run.id);
    assert!(bytes <= SIGNALS_KEPT_BYTES_MAX, "{}", run.id);

    let ids: BTreeSet<_> = rows::<SignalIds>(store, &number)
        .into_iter()
        .map(|((_, id), place)| (place, id))
        .collect();
    let places = rows::<SignalIdPlaces>(store, &number).into_iter();
    let places: BTreeSet<_> = places.map(|((_, place), id)| (place, id)).collect();
    assert_eq!(ids, places, "{}", run.id);
    let oldest = counts.ids_count.saturating_sub(SIGNAL_IDS_MAX);
    let places = places.iter().map(|(place, _)| *place);
    assert!(places.eq(oldest..counts.ids_count), "{}", run.id);
}
