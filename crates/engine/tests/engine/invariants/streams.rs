//! Streams: what their records say of themselves and what is stored.

use super::{read, rows};
use flotilla_engine::ids::StreamNumber;
use flotilla_engine::rows::{
    GroupNames, GroupRecord, Groups, Records, StreamCounts, StreamNames, StreamRecord, Streams,
    TimerKey, TimerKind, Timers,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(store: &MemoryStore) {
    let mut record_count = 0;
    for (number, stream) in rows::<Streams>(store, &()) {
        check_stream(store, number, &stream);
        check_limits(store, number, &stream);
        record_count += stream.record_count;
    }
    let all = rows::<Records>(store, &()).len() as u64;
    assert_eq!(all, record_count, "records without a stream");
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for ((namespace, name), number) in rows::<StreamNames>(store, &()) {
        *counts.entry(namespace.clone()).or_default() += 1;
        let stream = read::<Streams>(store, &number).expect("a name has a stream");
        assert_eq!((stream.namespace, stream.name), (namespace, name));
        assert!(!stream.is_deleted, "a deleted stream keeps its name");
    }
    let counted = rows::<StreamCounts>(store, &()).into_iter().collect();
    assert_eq!(counts, counted, "streams by namespace");
}

/// Counters, fronts and positions are those of the stored records.
fn check_stream(store: &MemoryStore, number: StreamNumber, stream: &StreamRecord) {
    let name = &stream.name;
    let partitions_count = stream.settings.partitions.get() as usize;
    assert_eq!(stream.partitions.len(), partitions_count, "{name}");
    let (mut bytes, mut count) = (0, 0);
    for (partition, summary) in (0_u32..).zip(&stream.partitions) {
        let records = rows::<Records>(store, &(number, partition));
        assert_eq!(records.len() as u64, summary.record_count, "{name}");
        let first = records.first().map(|((_, _, id), _)| *id);
        assert_eq!(first, summary.front, "the front of {name} {partition}");
        for (position, ((_, _, id), record)) in (summary.removed_count() + 1..).zip(&records) {
            assert_eq!(record.position, position, "{id} of {name}");
            assert!(*id <= stream.last_id, "{id} of {name}");
            bytes += record.size();
        }
        count += summary.record_count;
    }
    assert_eq!(
        (stream.bytes, stream.record_count),
        (bytes, count),
        "{name}"
    );
    if let Some(due_ms) = stream.sweep_due_ms {
        let timer = TimerKey {
            kind: TimerKind::StreamSweep,
            due_ms,
            subject: number.0,
            detail: 0,
        };
        assert!(
            read::<Timers>(store, &timer).is_some(),
            "the timer of {name}"
        );
    }
}

/// What is over a limit and wanted by no trigger goes without another append (A32).
fn check_limits(store: &MemoryStore, number: StreamNumber, stream: &StreamRecord) {
    let names = rows::<GroupNames>(store, &number).into_iter();
    let groups = names.map(|(_, group)| read::<Groups>(store, &group).expect("a named group"));
    let holding: Vec<GroupRecord> = groups.filter(GroupRecord::holds_retention).collect();
    let retention = stream.settings.retention;
    let is_over = retention
        .count_max
        .is_some_and(|max| stream.record_count > max)
        || retention.max_bytes.is_some_and(|max| stream.bytes > max);
    for (partition, summary) in stream.partitions.iter().enumerate() {
        let is_wanted = |front| {
            let mut groups = holding.iter();
            groups.any(|group| group.partitions[partition].next <= front)
        };
        if summary.front.is_some_and(|front| !is_wanted(front)) {
            let is_due = stream.sweep_due_ms.is_some();
            assert!(is_due || !is_over, "{} stays over its limits", stream.name);
        }
    }
}

/// Whether a stream waits for the timer.
pub(super) fn is_due(store: &MemoryStore, timer: &TimerKey) -> bool {
    let stream = read::<Streams>(store, &StreamNumber(timer.subject));
    stream.is_some_and(|stream| stream.sweep_due_ms == Some(timer.due_ms))
}
