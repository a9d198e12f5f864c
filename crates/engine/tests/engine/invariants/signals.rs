//! A run counts the signals that wait for its steps, and finds each id that it remembers by its place (W19).

use super::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::limits::{SIGNAL_IDS_MAX, SIGNALS_WAITING_BYTES_MAX, SIGNALS_WAITING_MAX};
use flotilla_engine::rows::{RunRecord, SignalIdPlaces, SignalIds, SignalsWaiting};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view;
use std::collections::BTreeSet;

pub(super) fn check(store: &MemoryStore, number: RunNumber, run: &RunRecord) {
    let waiting = rows::<SignalsWaiting>(store, &number);
    let counts = run.signals;
    assert_eq!(counts.waiting_count as usize, waiting.len(), "{}", run.id);
    let mut bytes = 0;
    for (_, signal) in &waiting {
        let payload = view::payload(store, signal.payload).expect("memory does not fail");
        assert_eq!(signal.bytes as usize, payload.as_str().len(), "{}", run.id);
        bytes += u64::from(signal.bytes);
    }
    assert_eq!(counts.waiting_bytes, bytes, "{}", run.id);
    assert!(counts.waiting_count <= SIGNALS_WAITING_MAX, "{}", run.id);
    assert!(bytes <= SIGNALS_WAITING_BYTES_MAX, "{}", run.id);

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
