//! The cost of keeping a stream within its limits (A32).

use crate::replica::Replica;
use crate::{invariants, samples};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::limits::{APPEND_RECORDS_MAX, PARTITIONS_MAX, SWEEP_ROWS_MAX};
use flotilla_engine::rows::{Records, Retention, StreamSettings, Streams};
use flotilla_engine::{AppendRecords, Body, CreateStream, NewRecord, TrimStream, TrimTo};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// A replica with a stream whose partitions are filled in turn.
fn replica(partitions: u32, count_max: Option<u64>) -> Replica {
    let mut replica = Replica::new();
    let settings = StreamSettings {
        partitions: NonZeroU32::new(partitions).expect("above zero"),
        retention: Retention {
            count_max,
            ..Retention::default()
        },
        ..StreamSettings::default()
    };
    let stream = samples::stream();
    let create = CreateStream { stream, settings };
    replica.ask(Body::CreateStream(create)).expect("accepted");
    append(&mut replica, partitions, APPEND_RECORDS_MAX);
    replica
}

fn append(replica: &mut Replica, partitions: u32, count: usize) {
    let record = |partition| NewRecord {
        payload: Bytes::from("{}"),
        headers: BTreeMap::new(),
        key: None,
        partition: Some(partition),
    };
    let append = AppendRecords {
        stream: samples::stream(),
        records: (0..partitions).cycle().take(count).map(record).collect(),
    };
    replica.ask(Body::AppendRecords(append)).expect("accepted");
}

fn records_count(replica: &Replica) -> usize {
    invariants::rows::<Records>(&replica.store, &()).len()
}

#[test]
fn partitions_that_were_filled_in_turn_are_emptied_with_few_seeks() {
    for partitions in [1, 2, PARTITIONS_MAX] {
        let mut replica = replica(partitions, None);
        let to = TrimTo::Newest(0);
        let stream = samples::stream();
        let trim = Body::TrimStream(TrimStream { stream, to });
        replica.ask(trim).expect("accepted");
        assert_eq!(records_count(&replica), APPEND_RECORDS_MAX - SWEEP_ROWS_MAX);
        let seeks_count = replica.scans_of::<Records>().len();
        // Batches of 2, 4, 8 and 16 records hold what one of 64 partitions has.
        assert!(seeks_count <= 4 * 64, "{seeks_count} of {partitions}");
        invariants::check(&replica.store);
    }
}

#[test]
fn a_stream_at_its_limit_reads_little_more_than_it_removes() {
    let partitions = 4;
    let mut replica = replica(partitions, Some(APPEND_RECORDS_MAX as u64));
    for _ in 0..8 {
        append(&mut replica, partitions, 1);
        assert_eq!(records_count(&replica), APPEND_RECORDS_MAX);
        assert_eq!(replica.rows, 2);
    }
    let stream = invariants::rows::<Streams>(&replica.store, &()).remove(0).1;
    assert_eq!(stream.record_count, APPEND_RECORDS_MAX as u64);
    invariants::check(&replica.store);
}
