//! Consumer groups: every delivered record is in exactly one place and has a timer.

use super::{read, rows};
use flotilla_engine::ids::GroupNumber;
use flotilla_engine::rows::{
    Cluster, Consumers, Deliveries, GroupNames, GroupRecord, Groups, Redeliveries, StreamRecord,
    Streams, TimerKey, TimerKind, Timers,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(store: &MemoryStore) {
    let groups = rows::<Groups>(store, &());
    let mut named_count = 0;
    for (number, group) in &groups {
        check_timer(store, *number, group);
        if group.is_deleted {
            continue;
        }
        named_count += 1;
        let named = read::<GroupNames>(store, &(group.stream, group.name.clone()));
        assert_eq!(named, Some(*number), "{}", group.name);
        let stream = read::<Streams>(store, &group.stream).expect("a group has a stream");
        let is_left = group.left_at_ms.is_some();
        let is_used = group.trigger.is_some() || group.consumer_count > 0;
        assert!(!is_left || !is_used, "{} was left", group.name);
        check_places(store, *number, group, &stream);
        check_consumers(store, *number, group);
    }
    let names = rows::<GroupNames>(store, &());
    assert_eq!(names.len(), named_count, "names without a group");
    for (number, stream) in rows::<Streams>(store, &()) {
        let own = rows::<GroupNames>(store, &number);
        assert_eq!(own.len(), stream.group_count as usize, "{}", stream.name);
        let read_group = |number| read::<Groups>(store, &number).expect("a name has a group");
        let groups = own.iter().map(|(_, number)| read_group(*number));
        let holding = groups.filter(GroupRecord::holds_retention);
        assert_eq!(
            holding.count(),
            stream.holds_count as usize,
            "{}",
            stream.name
        );
    }
}

/// Whether a group waits for the timer.
pub(super) fn is_due(store: &MemoryStore, timer: &TimerKey) -> bool {
    let group = read::<Groups>(store, &GroupNumber(timer.subject));
    group.is_some_and(|group| group.timer_due_ms == Some(timer.due_ms))
}

/// The timer is set where the group says, and not later than anything falls due.
fn check_timer(store: &MemoryStore, number: GroupNumber, group: &GroupRecord) {
    if let Some(due_ms) = group.timer_due_ms {
        let timer = TimerKey {
            kind: TimerKind::GroupDue,
            due_ms,
            subject: number.0,
            detail: 0,
        };
        assert!(read::<Timers>(store, &timer).is_some(), "{}", group.name);
    }
    let is_covered = |due_ms: u64| {
        group
            .timer_due_ms
            .is_some_and(|timer_ms| timer_ms <= due_ms)
    };
    if group.is_deleted {
        assert!(
            group.timer_due_ms.is_some(),
            "no timer sweeps {}",
            group.name
        );
        return;
    }
    let now_ms = read::<Cluster>(store, &()).map_or(0, |cluster| cluster.now_ms);
    let is_to_go_on = group.has_abandoned || group.pass_from.is_some();
    let dues = [
        group.leases.keys().next().copied(),
        is_to_go_on.then_some(now_ms),
        group.silence_due_ms,
    ];
    assert!(dues.into_iter().flatten().all(is_covered), "{}", group.name);
    check_delays(store, number, group);
}

/// The first record that is not due yet, in each order in which records wait, will be announced.
fn check_delays(store: &MemoryStore, number: GroupNumber, group: &GroupRecord) {
    let now_ms = read::<Cluster>(store, &()).map_or(0, |cluster| cluster.now_ms);
    let mut looked_at = BTreeSet::new();
    for ((_, rank, id), waiting) in rows::<Redeliveries>(store, &number) {
        let order = if group.keeps_order() { rank } else { 0 };
        if waiting.due_ms > now_ms && looked_at.insert(order) {
            let timer_ms = group.timer_due_ms.expect("records wait");
            assert!(timer_ms <= waiting.due_ms, "{id} waits for ever");
        }
    }
}

/// Counters are those of the rows; no record is in two places or ahead of what went out.
fn check_places(
    store: &MemoryStore,
    number: GroupNumber,
    group: &GroupRecord,
    stream: &StreamRecord,
) {
    let mut seen = BTreeSet::new();
    let mut leases: BTreeMap<u64, u32> = BTreeMap::new();
    let mut in_flight = vec![0; group.partitions.len()];
    let mut waiting = in_flight.clone();
    for ((_, consumer, _), delivery) in rows::<Deliveries>(store, &number) {
        assert!(
            !delivery.records.is_empty(),
            "an empty delivery of {consumer}"
        );
        for record in &delivery.records {
            assert!(seen.insert(record.id), "{} is in two places", record.id);
            *leases.entry(record.expires_at_ms).or_default() += 1;
            let partition = record.partition as usize;
            in_flight[partition] += 1;
            let own = &group.partitions[partition];
            assert!(record.id < own.next, "{} did not go out", record.id);
            let is_holder = own.holder == delivery.consumer;
            assert!(!group.keeps_order() || is_holder, "{} is shared", record.id);
        }
    }
    for ((_, rank, id), one) in rows::<Redeliveries>(store, &number) {
        assert!(seen.insert(id), "{id} is in two places");
        assert_eq!(rank, group.rank(&one), "{id}");
        let partition = one.partition as usize;
        waiting[partition] += 1;
        let is_ahead = if group.keeps_order() {
            id >= group.partitions[partition].waiting_from
        } else {
            one.due_ms >= group.waiting_from_ms
        };
        assert!(is_ahead, "no reader finds {id}");
        assert!(id < group.partitions[partition].next, "{id} did not go out");
    }
    assert_eq!(group.leases, leases, "the leases of {}", group.name);
    assert_eq!(group.partitions.len(), stream.partitions.len());
    for (partition, own) in group.partitions.iter().enumerate() {
        let found = (in_flight[partition], waiting[partition]);
        assert_eq!(
            (own.in_flight_count, own.waiting_count),
            found,
            "{}",
            group.name
        );
        let appended_count = stream.partitions[partition].appended_count;
        assert!(own.passed_count <= appended_count, "{}", group.name);
    }
}

/// In the modes that keep order each partition is assigned to a consumer that is there.
fn check_consumers(store: &MemoryStore, number: GroupNumber, group: &GroupRecord) {
    let consumers = rows::<Consumers>(store, &number);
    assert_eq!(
        consumers.len(),
        group.consumer_count as usize,
        "{}",
        group.name
    );
    let numbers: BTreeSet<u32> = consumers.iter().map(|(_, one)| one.number).collect();
    assert_eq!(
        numbers.len(),
        consumers.len(),
        "{}: two of a number",
        group.name
    );
    for partition in &group.partitions {
        match partition.assigned {
            Some(assigned) => assert!(numbers.contains(&assigned), "{}", group.name),
            None => assert!(!group.keeps_order() || numbers.is_empty(), "{}", group.name),
        }
    }
}
