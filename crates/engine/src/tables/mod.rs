//! The catalogue of every durable key (design rule 4).
//!
//! A table's number is the first byte of its keys. Numbers are appended and never reused; 0xF0 and
//! above belong to the replica's own rows.

mod action;
mod action_run;
mod activation;
mod catalogue;
mod cluster;
mod continuation;
mod dead_letter;
mod definition;
mod group;
mod history;
mod key;
mod kv;
mod label;
mod namespace;
mod payload;
mod plan;
mod plan_event;
mod plan_executor;
mod plan_state;
mod quarantine;
mod ready;
mod request;
mod retention;
mod run;
mod run_index;
mod schedule;
mod signal;
mod stream;
mod timer;
mod trigger;
mod worker;
mod workflow;

pub use action::{ActionKind, ActionRecord, Actions, ModuleRecord, Modules, WasmLimits};
pub use action_run::{
    ActionRunKeys, ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns,
    ActionRunsByAction, AwaitedReport, Lease, TaskError,
};
pub use activation::{Activation, ActivationState, Activations, Awaited, StepResult, StepResults};
pub use catalogue::check_row;
pub use cluster::{Cluster, ClusterRecord};
pub use continuation::{Continuation, InputVerdict, PendingWorks, Settled, Work};
pub use dead_letter::{
    DeadLetterInputs, DeadLetterQueueRecord, DeadLetterQueues, DeadLetterRecord, DeadLetters,
};
pub use definition::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, RevisionsByContent,
    VersionRecord, Versions,
};
pub use group::{
    ConsumerRecord, Consumers, DeliveredRecord, Deliveries, DeliveryPlace, DeliveryRecord,
    GroupNames, GroupPartition, GroupRecord, GroupTrigger, Groups, Redeliveries, RedeliveryRecord,
};
pub use history::{Event, EventKind, History, HistoryRecord};
pub(crate) use key::RowKey;
pub use key::{Key, KeyBytes};
pub use kv::{KeyExpiries, KeyRecord, Keys};
pub use label::LabelSet;
pub use namespace::{NamespaceRecord, Namespaces};
pub use payload::{PayloadOwner, PayloadRef, Payloads};
pub use plan::{
    CacheExpiries, CacheUsage, CachedResultRecord, CachedResults, PlanExecutors, PlanNumbers,
    PlanRecord, Plans,
};
pub use plan_event::PlanEvent;
pub use plan_executor::{BreakerState, CallBucket, PlanExecutorRecord, Probe, Sample, Verdict};
pub use plan_state::{PlanFailure, PlanState, PlanWait};
pub use quarantine::{Quarantine, QuarantineRecord, Quarantined, QuarantinedKind};
pub use ready::{
    LabelQueuePlaces, LabelQueueRecord, LabelQueues, Ready, ReadyActionRecord, ReadyActions,
    ReadyQueue,
};
pub use request::{RequestAgeRecord, RequestAges, RequestRecord, Requests};
pub use retention::{Expiration, Expirations, Expiring, RunRemains, RunRemainsRecord};
pub use run::{
    AttributeValue, End, HistoryCursor, IdempotencyKeys, InputChecks, ParentLink, RunNames,
    RunRecord, RunStatus, Runs, TriggeredBy,
};
pub use run_index::{
    AttributeKey, RunsByAttribute, RunsByCompletion, RunsByStatus, RunsByWorkflow,
};
pub use schedule::{
    FiringRecord, LiveSchedule, NextFiring, ScheduleRecord, Schedules, SchedulesDue,
};
pub use signal::{SignalIds, SignalRecord, SignalsWaiting};
pub(crate) use stream::record_size;
pub use stream::{
    PartitionRecord, RecordContent, Records, Retention, StreamNames, StreamRecord, StreamSettings,
    Streams, Trim,
};
pub use timer::{TimerKey, TimerKind, Timers};
pub use trigger::{LiveTrigger, TriggerRecord, Triggers, TriggersByStream, TriggersDue};
pub use worker::{
    Process, ProcessKind, ProcessRecord, SilentWorkers, WorkerActivities, WorkerActivityRecord,
    WorkerCounts, WorkerKind, WorkerNumbers, WorkerRecord, WorkerState, Workers,
};
pub use workflow::{WorkflowRecord, Workflows};

use crate::codec::{self, DecodeError};
use crate::store::{KeyRange, Order, Reader, StoreError};
use serde::{Serialize, de::DeserializeOwned};
use std::ops::ControlFlow;

/// Most rows take no more, key and value together. In bytes.
pub(crate) const ROW_BYTES_COMMON: usize = 128;

/// One family of keys: each file of this module is one or a few closely related ones.
pub trait Table {
    /// The first byte of its keys.
    const NUMBER: u8;
    /// Whether decoded records are kept in the engine's cache (design rule 4).
    const IS_HOT: bool = false;
    /// Whether this record of a hot table is kept: what nobody will work on again only takes the room of others.
    fn is_worked_on(_: &Self::Record) -> bool {
        true
    }
    /// About how much a record takes, in bytes.
    fn bytes(_: &Self::Record) -> usize {
        ROW_BYTES_COMMON
    }
    /// The key behind the number.
    type Key: Key;
    /// The record.
    type Record: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
}

/// The versions of a record. A table whose record changes adds its own enum of versions.
#[derive(serde::Serialize, serde::Deserialize)]
enum Versioned<R> {
    V1(R),
}

#[derive(serde::Serialize)]
pub(crate) enum VersionedRef<'a, R> {
    V1(&'a R),
}

/// The whole key of `key` in table `T`.
#[must_use]
pub fn encode_key<T: Table>(key: &T::Key) -> Vec<u8> {
    key_bytes::<T>(key).into_vec()
}

/// As [`encode_key`], for the rows of a turn.
pub(crate) fn row_key<T: Table>(key: &T::Key) -> RowKey {
    key_bytes::<T>(key).into()
}

fn key_bytes<T: Table>(parts: &impl Key) -> KeyBytes {
    let mut bytes = KeyBytes::new();
    bytes.push(T::NUMBER);
    parts.encode(&mut bytes);
    bytes
}

/// The bytes that the keys of `T` beginning with the parts in `prefix` begin with.
#[must_use]
pub fn encode_prefix<T: Table>(prefix: &impl Key) -> Vec<u8> {
    key_bytes::<T>(prefix).into_vec()
}

/// The keys of `T` that begin with the parts in `prefix`, from the first on that is not before `first`,
/// which begins with them too.
pub(crate) fn range_from<T: Table>(prefix: &impl Key, first: &impl Key) -> KeyRange {
    KeyRange {
        from: encode_prefix::<T>(first),
        to: KeyRange::prefix(&encode_prefix::<T>(prefix)).to,
    }
}

/// The key in bytes that [`encode_key`] made; `None` for any other bytes.
#[must_use]
pub fn decode_key<T: Table>(bytes: &[u8]) -> Option<T::Key> {
    let mut rest = bytes.strip_prefix(&[T::NUMBER])?;
    let key = T::Key::decode(&mut rest)?;
    rest.is_empty().then_some(key)
}

/// The persisted form of a record of `T`.
#[must_use]
pub fn encode_record<T: Table>(record: &T::Record) -> Vec<u8> {
    codec::encode(&VersionedRef::V1(record))
}

/// Reads a record of `T`.
///
/// # Errors
/// [`DecodeError`] for bytes that this version cannot read: the store is damaged or newer.
pub fn decode_record<T: Table>(bytes: &[u8]) -> Result<T::Record, DecodeError> {
    let Versioned::V1(record) = codec::decode(bytes)?;
    Ok(record)
}

/// Reads one record of `T`.
///
/// # Errors
/// [`StoreError`] when the store fails or the record cannot be decoded.
pub fn read<T: Table>(reader: &dyn Reader, key: &T::Key) -> Result<Option<T::Record>, StoreError> {
    let Some(bytes) = reader.get(&encode_key::<T>(key))? else {
        return Ok(None);
    };
    Ok(Some(decode_record::<T>(&bytes).map_err(damaged)?))
}

/// Visits the records of `T` in `range` until `visit` breaks.
///
/// # Errors
/// [`StoreError`] when the store fails or a record cannot be decoded.
pub fn visit<T: Table>(
    reader: &dyn Reader,
    range: &KeyRange,
    order: Order,
    mut visit: impl FnMut(T::Key, T::Record) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut failure = None;
    reader.scan(
        range,
        order,
        &mut |key, value| match decode_row::<T>(key, value) {
            Ok((key, record)) => visit(key, record),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        },
    )?;
    failure.map_or(Ok(()), Err)
}

/// Decodes a whole row of `T`.
///
/// # Errors
/// [`StoreError`] when the row is no row of `T`: the store is damaged.
pub fn decode_row<T: Table>(key: &[u8], value: &[u8]) -> Result<(T::Key, T::Record), StoreError> {
    let record = decode_record::<T>(value).map_err(damaged)?;
    Ok((key_of::<T>(key)?, record))
}

/// The key of a row of `T`, or the failure of a store that is damaged.
pub(crate) fn key_of<T: Table>(bytes: &[u8]) -> Result<T::Key, StoreError> {
    decode_key::<T>(bytes).ok_or_else(|| damaged_key(T::NUMBER, bytes))
}

pub(crate) fn damaged(error: DecodeError) -> StoreError {
    StoreError(Box::new(error))
}

fn damaged_key(table: u8, key: &[u8]) -> StoreError {
    StoreError(format!("expected a key of table {table}, but found {key:02x?}").into())
}

/// Declares tables: number, name, key and record, whether decoded records are kept, perhaps only some, and how large
/// the content of a record is, where a caller or a definition decides that.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $number:literal $name:ident($key:ty) -> $record:ty
            $(, $hot:ident $(while $is_worked_on:expr)?)?
            $(=> $bytes:expr)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl crate::tables::Table for $name {
            const NUMBER: u8 = $number;
            $(
                const IS_HOT: bool = crate::tables::$hot;
                $(
                    fn is_worked_on(record: &Self::Record) -> bool {
                        let is_worked_on: fn(&Self::Record) -> bool = $is_worked_on;
                        is_worked_on(record)
                    }
                )?
            )?
            $(
                fn bytes(record: &Self::Record) -> usize {
                    let bytes: fn(&Self::Record) -> usize = $bytes;
                    crate::tables::ROW_BYTES_COMMON + bytes(record)
                }
            )?
            type Key = $key;
            type Record = $record;
        }
    )*};
}
pub(crate) use tables;

/// Marks a table whose decoded records are cached.
pub(crate) const HOT: bool = true;
