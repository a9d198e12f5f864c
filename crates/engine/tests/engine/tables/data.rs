//! One row of every table of keys, namespaces, streams and groups.

use super::{Row, row};
use crate::samples;
use flotilla_engine::TakeId;
use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::{GroupNumber, StreamNumber};
use flotilla_engine::rows::{
    ConsumerRecord, Consumers, DeliveredRecord, Deliveries, DeliveryRecord, GroupNames,
    GroupPartition, GroupRecord, GroupTrigger, Groups, KeyExpiries, KeyRecord, Keys,
    NamespaceRecord, Namespaces, PartitionRecord, RecordContent, Records, Redeliveries,
    RedeliveryRecord, StreamCounts, StreamNames, StreamRecord, Streams, Trim,
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = key_rows();
    rows.extend(stream_rows());
    rows.extend(group_rows());
    rows
}

fn key_rows() -> Vec<Row> {
    let record = KeyRecord {
        value: Bytes::from("blue"),
        version: 5,
        expires_at_ms: Some(9_000),
        updated_at_ms: 1_000,
    };
    vec![
        row::<Keys>((samples::namespace(), samples::kv_key()), record),
        row::<Namespaces>(
            samples::namespace(),
            NamespaceRecord {
                created_at_ms: 1_000,
                mark: None,
            },
        ),
        row::<KeyExpiries>((9_000, samples::namespace(), samples::kv_key()), 5),
    ]
}

fn stream_rows() -> Vec<Row> {
    let (stream, id) = (StreamNumber(3), samples::record_id());
    let partition = PartitionRecord {
        appended_count: 9,
        record_count: 4,
        front: Some(id),
    };
    vec![
        row::<Streams>(
            stream,
            StreamRecord {
                namespace: samples::namespace(),
                name: samples::stream(),
                settings: samples::stream_settings(),
                last_id: id,
                record_count: 4,
                bytes: 400,
                partitions: vec![partition, PartitionRecord::default()],
                trim: Trim {
                    before: id,
                    count: 2,
                },
                lost_count: 1,
                group_count: 2,
                holds_count: 1,
                is_deleted: true,
                sweep_due_ms: Some(9_000),
                created_at_ms: 1_000,
            },
        ),
        row::<StreamNames>((samples::namespace(), samples::stream()), stream),
        row::<StreamCounts>(samples::namespace(), 2),
        row::<Records>(
            (stream, 1, id),
            RecordContent {
                payload: Bytes::from("{}"),
                headers: samples::labels(),
                key: Some(samples::partition_key()),
                position: 9,
                hops: 2,
            },
        ),
    ]
}

fn group_rows() -> Vec<Row> {
    let (group, id) = (GroupNumber(2), samples::record_id());
    let delivered = DeliveredRecord {
        id,
        partition: 1,
        attempt: 2,
        expires_at_ms: 31_000,
    };
    vec![
        row::<Groups>(group, group_record()),
        row::<GroupNames>((StreamNumber(3), samples::group().group), group),
        row::<Consumers>(
            (group, samples::consumer()),
            ConsumerRecord {
                number: 4,
                incarnation: 5,
                replaced: Some(6),
                worker: Some(samples::worker()),
                joined_at_ms: 1_000,
                last_heartbeat_at_ms: 2_000,
            },
        ),
        row::<Deliveries>(
            (group, samples::consumer(), TakeId(9)),
            DeliveryRecord {
                consumer: 4,
                records: vec![delivered],
            },
        ),
        row::<Redeliveries>(
            (group, 1, id),
            RedeliveryRecord {
                partition: 1,
                attempts: 3,
                due_ms: 9_000,
            },
        ),
    ]
}

fn group_record() -> GroupRecord {
    let partition = GroupPartition {
        next: samples::record_id(),
        passed_count: 9,
        in_flight_count: 1,
        waiting_count: 1,
        waiting_from: samples::record_id(),
        assigned: Some(4),
        holder: 4,
    };
    GroupRecord {
        stream: StreamNumber(3),
        name: samples::group().group,
        settings: samples::group_settings(),
        trigger: Some(GroupTrigger {
            workflow: (samples::namespace(), samples::workflow()),
            is_creator: true,
            holds_retention: true,
        }),
        left_at_ms: Some(1_500),
        partitions: vec![partition, GroupPartition::default()],
        next_partition: 1,
        consumer_count: 1,
        joins_count: 4,
        acked_count: 7,
        dead_count: 1,
        lost_count: 1,
        leases: BTreeMap::from([(31_000, 1)]),
        has_abandoned: true,
        left: BTreeSet::from([3]),
        pass_from: Some((samples::consumer(), TakeId(8))),
        waiting_from_ms: 9_000,
        silence_due_ms: Some(91_000),
        timer_due_ms: Some(9_000),
        is_deleted: true,
        created_at_ms: 1_000,
    }
}
