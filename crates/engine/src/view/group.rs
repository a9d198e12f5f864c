//! Reads consumer groups: positions, consumers and records in flight (A31).

use super::is_quarantined;
use super::page::{Page, PageRange, Scope, page, prefix};
use super::stream::{RecordView, find_stream};
use crate::group::{NumberedGroup, TakeRecords, waiting_orders, waiting_range};
use crate::ids::{
    ConsumerName, GroupName, GroupNumber, GroupRef, Namespace, StreamName, TakeId, WorkerId,
};
use crate::limits::{CONSUMERS_MAX, PENDING_MAX};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::stream::RecordId;
use crate::tables::{
    ConsumerRecord, Consumers, Deliveries, GroupNames, GroupRecord, Groups, Key, QuarantinedKind,
    Records, Redeliveries, StreamRecord, Table, WorkerActivities, encode_prefix, read, visit,
};
use std::ops::ControlFlow;

/// A consumer group.
#[derive(Clone, Debug)]
pub struct GroupView {
    /// Its name.
    pub name: GroupName,
    /// Its settings and its position.
    pub record: GroupRecord,
    /// Records that were never delivered.
    pub lag: u64,
    /// Records that were delivered and not acked.
    pub pending_count: u32,
    /// Whether it is quarantined (design rule 10).
    pub is_quarantined: bool,
}

/// A record that was delivered and not acked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingView {
    /// Its id.
    pub id: RecordId,
    /// Its partition.
    pub partition: u32,
    /// Deliveries so far.
    pub attempts: u32,
    /// Whether it is in flight or waits for redelivery.
    pub state: PendingState,
}

/// The state of a pending record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingState {
    /// A consumer holds it.
    InFlight {
        /// The consumer.
        consumer: ConsumerName,
        /// The take that delivered it.
        take: TakeId,
        /// The ack deadline, in milliseconds.
        expires_at_ms: u64,
    },
    /// It waits for redelivery.
    Waiting {
        /// When it may be redelivered, in milliseconds.
        due_ms: u64,
    },
}

/// A record as delivered to its consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredView {
    /// The record.
    pub record: RecordView,
    /// The number of this delivery, from 1.
    pub attempt: u32,
    /// The ack deadline, in milliseconds.
    pub expires_at_ms: u64,
}

/// A consumer group of a stream.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn group(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &GroupRef,
) -> Result<Option<GroupView>, StoreError> {
    let found = find(reader, namespace, name)?;
    let Some((number, record, stream)) = found else {
        return Ok(None);
    };
    view(reader, name.group.clone(), (number, record), &stream).map(Some)
}

/// The consumer groups of a stream by name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn groups(
    reader: &dyn Reader,
    namespace: &Namespace,
    stream: &StreamName,
    range: PageRange<'_>,
) -> Result<Page<GroupView>, StoreError> {
    let Some((number, stream)) = find_stream(reader, namespace, stream)? else {
        return Ok(Page {
            items: Vec::new(),
            next: None,
        });
    };
    let prefix = prefix::<GroupNames>(&number);
    page::<GroupNames, _>(
        reader,
        &Scope::new(&prefix, range),
        |reader, (_, name), number| {
            let record = read::<Groups>(reader, &number)?;
            let view = |record| view(reader, name, (number, record), &stream);
            record.map(view).transpose()
        },
    )
}

/// The consumers of a group by name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn consumers(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &GroupRef,
) -> Result<Vec<(ConsumerName, ConsumerRecord)>, StoreError> {
    let Some((number, _, _)) = find(reader, namespace, name)? else {
        return Ok(Vec::new());
    };
    let rows = rows::<Consumers>(reader, &number, CONSUMERS_MAX as usize)?;
    let consumers = rows.into_iter().map(|((_, name), record)| (name, record));
    Ok(consumers.collect())
}

/// At most `limit` pending records of a group: first those in flight, by consumer, then those that wait for redelivery.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn pending(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &GroupRef,
    limit: usize,
) -> Result<Vec<PendingView>, StoreError> {
    let Some((number, _, _)) = find(reader, namespace, name)? else {
        return Ok(Vec::new());
    };
    let mut pending = Vec::new();
    for ((_, consumer, take), delivery) in rows::<Deliveries>(reader, &number, limit)? {
        pending.extend(delivery.records.iter().map(|record| PendingView {
            id: record.id,
            partition: record.partition,
            attempts: record.attempt,
            state: PendingState::InFlight {
                consumer: consumer.clone(),
                take,
                expires_at_ms: record.expires_at_ms,
            },
        }));
    }
    let left = limit.saturating_sub(pending.len());
    for ((_, _, id), waiting) in rows::<Redeliveries>(reader, &number, left)? {
        pending.push(PendingView {
            id,
            partition: waiting.partition,
            attempts: waiting.attempts,
            state: PendingState::Waiting {
                due_ms: waiting.due_ms,
            },
        });
    }
    pending.truncate(limit);
    Ok(pending)
}

/// The unacknowledged records of a take by the calling process, without those that the stream has removed since.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn delivery(
    reader: &dyn Reader,
    namespace: &Namespace,
    request: &TakeRecords,
) -> Result<Vec<DeliveredView>, StoreError> {
    let Some((number, group, _)) = find(reader, namespace, &request.group)? else {
        return Ok(Vec::new());
    };
    let Some(joined) = joined(reader, number, request)? else {
        return Ok(Vec::new());
    };
    let delivery = read::<Deliveries>(reader, &(number, request.consumer.clone(), request.take))?;
    let own = delivery.filter(|delivery| delivery.consumer == joined.number);
    let mut delivered = Vec::new();
    for record in own.map_or_else(Vec::new, |delivery| delivery.records) {
        let key = (group.stream, record.partition, record.id);
        let Some(content) = read::<Records>(reader, &key)? else {
            continue;
        };
        delivered.push(DeliveredView {
            record: RecordView {
                id: record.id,
                partition: record.partition,
                content,
            },
            attempt: record.attempt,
            expires_at_ms: record.expires_at_ms,
        });
    }
    Ok(delivered)
}

/// Whether a take at `now_ms` would get records or be rejected: only then is it worth an entry of the log. A consumer
/// whose worker drains gets nothing.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn has_records(
    reader: &dyn Reader,
    namespace: &Namespace,
    request: &TakeRecords,
    now_ms: u64,
) -> Result<bool, StoreError> {
    let Some((number, group, stream)) = find(reader, namespace, &request.group)? else {
        return Ok(true);
    };
    if is_quarantined(reader, (QuarantinedKind::Group, number.0))? {
        return Ok(true);
    }
    let Some(joined) = joined(reader, number, request)? else {
        return Ok(true);
    };
    if is_draining(reader, namespace, joined.worker.as_ref())? {
        return Ok(false);
    }
    let is_full = group.pending_count() >= PENDING_MAX;
    for (own, partition) in group.partitions.iter().zip(&stream.partitions) {
        if !is_full && own.lag(partition) > 0 && group.is_open(own, joined.number) {
            return Ok(true);
        }
    }
    for order in waiting_orders(&group) {
        let own = order.and_then(|partition| group.partition(partition));
        let is_closed = own.is_some_and(|own| !group.may_take(own, joined.number));
        let range = waiting_range(number, &group, order);
        if !is_closed && is_first_due(reader, &range, now_ms)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The consumer, if the process that asks is the one that has joined.
fn joined(
    reader: &dyn Reader,
    group: GroupNumber,
    request: &TakeRecords,
) -> Result<Option<ConsumerRecord>, StoreError> {
    let found = read::<Consumers>(reader, &(group, request.consumer.clone()))?;
    Ok(found.filter(|found| found.incarnation == request.incarnation))
}

/// Whether there is a worker, and it drains (A21).
fn is_draining(
    reader: &dyn Reader,
    namespace: &Namespace,
    worker: Option<&WorkerId>,
) -> Result<bool, StoreError> {
    let Some(worker) = worker else {
        return Ok(false);
    };
    let activity = read::<WorkerActivities>(reader, &(namespace.clone(), worker.clone()))?;
    Ok(activity.is_some_and(|activity| activity.status.is_draining()))
}

/// Whether the first of the records that wait in `range` may go out.
fn is_first_due(reader: &dyn Reader, range: &KeyRange, now_ms: u64) -> Result<bool, StoreError> {
    let mut is_due = false;
    visit::<Redeliveries>(reader, range, Order::Ascending, |_, waiting| {
        is_due = waiting.due_ms <= now_ms;
        ControlFlow::Break(())
    })?;
    Ok(is_due)
}

fn find(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &GroupRef,
) -> Result<Option<(GroupNumber, GroupRecord, StreamRecord)>, StoreError> {
    let Some((stream_number, stream)) = find_stream(reader, namespace, &name.stream)? else {
        return Ok(None);
    };
    let Some(number) = read::<GroupNames>(reader, &(stream_number, name.group.clone()))? else {
        return Ok(None);
    };
    let group = read::<Groups>(reader, &number)?;
    Ok(group.map(|group| (number, group, stream)))
}

fn view(
    reader: &dyn Reader,
    name: GroupName,
    group: NumberedGroup,
    stream: &StreamRecord,
) -> Result<GroupView, StoreError> {
    let (number, record) = group;
    Ok(GroupView {
        name,
        lag: record.lag(stream),
        pending_count: record.pending_count(),
        record,
        is_quarantined: is_quarantined(reader, (QuarantinedKind::Group, number.0))?,
    })
}

type Row<T> = (<T as Table>::Key, <T as Table>::Record);

/// The first rows of `T` whose keys begin with `prefix`.
fn rows<T: Table>(
    reader: &dyn Reader,
    prefix: &impl Key,
    limit: usize,
) -> Result<Vec<Row<T>>, StoreError> {
    let mut rows = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<T>(prefix));
    visit::<T>(reader, &range, Order::Ascending, |key, record| {
        if rows.len() == limit {
            return ControlFlow::Break(());
        }
        rows.push((key, record));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}
