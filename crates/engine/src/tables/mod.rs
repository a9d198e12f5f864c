//! The catalogue of every durable key (design rule 4).
//!
//! A table's number is the first byte of its keys. Numbers are appended and never reused; 0xF0 and
//! above belong to the replica's own rows.

mod access;
mod action;
mod action_run;
mod action_run_block;
mod activation;
mod approval;
mod catalogue;
mod cluster;
mod compensation;
mod concurrency;
mod continuation;
mod cursor;
mod dead_letter;
mod definition;
mod exclusion;
mod group;
mod group_settings;
mod history;
mod info;
mod item;
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
mod quota;
mod ready;
mod request;
mod retention;
mod row_source;
mod run;
mod run_index;
mod schedule;
mod scope;
mod settings;
mod signal;
mod stream;
mod timer;
mod trigger;
mod usage;
mod worker;
mod workflow;

pub use access::{
    Access, AccessRecord, BindingCounts, BindingRecord, Bindings, BindingsByScope, BlockRecord,
    BlockedSubjectCount, BlockedSubjects, BlocksEnding, TokenCounts, TokenRecord, TokenSecrets,
    Tokens, TokensByScope, TokensEnding,
};
pub use action::{ActionRecord, ActionType, Actions, ModuleRecord, Modules, WasmLimits};
pub use action_run::{
    ActionRunKeys, ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns,
    ActionRunsByAction, ActionRunsByRun, AwaitedReport, Lease, ReportProof, TaskError,
};
pub use action_run_block::{ActionRunBlock, ActionRunSet};
pub use activation::{
    Activation, ActivationEnding, ActivationState, ActivationTimeouts, Activations, Awaited,
    Branches, Iterations, JoinDecision, OpenApproval, QueuedChild, SignalWait, StepResult,
    StepResults, UncheckedOutput,
};
pub use approval::{DecisionRecord, Decisions};
pub use catalogue::check_row;
pub use cluster::{Cluster, ClusterRecord};
pub use compensation::{
    CompensationCounts, CompensationPlace, CompensationProgress, CompensationRecord, Compensations,
    Dropped, UndoOwner, Undoing, Undone,
};
pub use concurrency::{
    BoundIdempotencyKeys, ConcurrencyHolders, ConcurrencyKey, ConcurrencyKeyNumbers,
    ConcurrencyKeyRecord, ConcurrencyKeys, ConcurrencyQueue, KeySharing,
};
pub use continuation::{
    AttemptSignals, BranchPlace, ChildInputVerdict, Continuation, EndCause, Ending, FailureCause,
    FormerBranches, FormerItems, ItemPosition, OverdueStep, PendingWorks, Replacement,
    SchemaVerdict, ScopeEnd, StepTimeout, TargetResult, Work,
};
pub use cursor::{Cursor, ResumableScopes, ResumableSteps, RunCursor};
pub use dead_letter::{
    DeadLetterInputs, DeadLetterPlaces, DeadLetterQueueRecord, DeadLetterQueues, DeadLetterRecord,
    DeadLetters,
};
pub use definition::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, Revisions,
    RevisionsByContent, VersionRecord, Versions,
};
pub use exclusion::{
    ExclusionRecord, Exclusions, LockCount, LockCounts, LockHolders, Locks, OpenLock, OpenLocks,
    RunTargetValue, TargetHolders,
};
pub use group::{
    ConsumerRecord, Consumers, DeliveredRecord, Deliveries, DeliveryPosition, DeliveryRecord,
    GroupNames, GroupPartition, GroupRecord, GroupTrigger, Groups, Redeliveries, RedeliveryRecord,
};
pub use group_settings::{AckTimeoutInvalid, GroupSettings};
pub use history::{Event, EventKind, History, HistoryRecord, RunRevisionChange};
pub use info::{InfoRecord, InfoTask, Infos};
pub use item::{ItemRecord, Items, IterationResult, IterationResults};
pub use key::Key;
pub(crate) use key::{KEY_BYTES_COMMON, KeyBytes, RowKey};
pub use kv::{KeyExpiries, KeyRecord, Keys};
pub use label::LabelSet;
pub use namespace::{NamespaceRecord, Namespaces};
pub(crate) use payload::join_parts;
pub use payload::{PayloadOwner, PayloadPart, PayloadRef, Payloads, PayloadsHeld, StoredPayload};
pub use plan::{
    CacheExpiries, CacheUsage, CachedResultRecord, CachedResults, EventListing, PlanExecutors,
    PlanNumbers, PlanRecord, Plans, PlansByEvent,
};
pub use plan_event::PlanEvent;
pub use plan_executor::{BreakerState, PlanExecutorRecord, Probe, Sample, Verdict};
pub use plan_state::{PlanFailure, PlanState, PlanWait};
pub use quarantine::{Quarantine, QuarantineRecord, QuarantinedItem, QuarantinedKind};
pub use quota::{
    QuotaRecord, QuotaWindowRecord, QuotaWindows, Quotas, TimeSlice, TreeUsages, UsageRecord,
    Usages,
};
pub use ready::{
    LabelQueueRecord, LabelQueueSet, LabelQueues, Ready, ReadyActionRecord, ReadyActions,
    ReadyQueue,
};
pub use request::{
    AcceptedRequests, RequestAgeRecord, RequestAges, RequestRecord, RequestUsage, RequestUsages,
    Requests,
};
pub use retention::{Expiration, Expirations, Expiring, RunRemains};
pub(crate) use row_source::{RowSource, StoredRows};
pub use run::{
    AttemptChain, AttributeValue, ConcurrencyPlace, End, Exclusion, FixedEnd, FormerDefinition,
    HistoryCursor, IdempotencyKeys, LockPlace, ParentLink, Phase, Resumption, RunConcurrency,
    RunNames, RunRecord, RunStatus, RunTimers, Runs, SchemaChecks, ScopeCounts, StartLimits,
    TriggeredBy, Trimming,
};
pub use run_index::{
    AttributeKey, RunsByAttribute, RunsByCompletion, RunsByStatus, RunsByWorkflow,
};
pub use schedule::{
    FiringRecord, LiveSchedule, NextFiring, ScheduleRecord, Schedules, SchedulesDue,
};
pub use scope::{
    BranchResult, BranchResults, ScopeId, ScopePath, ScopeProgress, ScopeRecord, ScopeStep, Scopes,
    StateRecord, States,
};
pub use settings::{ClusterSettings, ClusterSettingsRecord};
pub use signal::{
    SignalCounts, SignalIdPlaces, SignalIds, SignalRecord, SignalsWaiting, TakenSignal,
    TakenSignals,
};
pub(crate) use stream::record_size;
pub use stream::{
    PartitionRecord, RecordContent, Records, Retention, StreamCounts, StreamNames, StreamRecord,
    StreamSettings, Streams, Trim,
};
pub use timer::{TimerKey, TimerKind, Timers};
pub use trigger::{
    LiveTrigger, TriggerCounts, TriggerRecord, Triggers, TriggersByStream, TriggersDue,
};
pub use usage::{RunUsageRecord, RunUsages, StepUsages};
pub use worker::{
    GoneWorkerRecord, GoneWorkers, HeldTasks, LEASE_SUSPENDED_MS, LeaseBlock, LeasePlace,
    LeaseWatch, Process, ProcessKind, ProcessRecord, SilentWorkers, WorkerActivities,
    WorkerActivityRecord, WorkerCounts, WorkerLeases, WorkerNumbers, WorkerOwner, WorkerProcesses,
    WorkerRecord, WorkerStatus, WorkerType, Workers,
};
pub use workflow::{WorkflowCounts, WorkflowRecord, Workflows, WorkflowsBeingDeleted};

use crate::codec::{self, DecodeError};
use crate::persisted::{OneVersion, OneVersionRef};
use crate::store::{KeyRange, Order, Reader, StoreError};
use serde::{Serialize, de::DeserializeOwned};
use std::ops::ControlFlow;

/// The initial capacity for a row. Most rows fit, key and value together. In bytes.
pub(crate) const ROW_BYTES_COMMON: usize = 128;

/// A family of keys. Each file of this module has one table or a few closely related ones.
pub trait Table {
    /// The first byte of its keys.
    const NUMBER: u8;
    /// Whether decoded records are kept in the engine's cache (design rule 4).
    const IS_HOT: bool = false;
    /// Whether this record of a hot table stays in the cache: a record that no turn will change again only takes the
    /// space of others.
    fn is_worked_on(_: &Self::Record) -> bool {
        true
    }
    /// The size of what a record holds for a client, such as a payload, in bytes.
    fn content_bytes(_: &Self::Record) -> usize {
        0
    }
    /// Appends the encoded record. A table whose record has several versions delegates to its type
    /// ([`Persisted`](crate::persisted::Persisted)).
    fn encode(record: &Self::Record, bytes: &mut Vec<u8>) {
        codec::encode_into(&OneVersionRef::V1(record), bytes);
    }
    /// Decodes a record of any version.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that this build cannot read: the store is damaged or newer.
    fn decode(bytes: &[u8]) -> Result<Self::Record, DecodeError> {
        let OneVersion::V1(record) = codec::decode(bytes)?;
        Ok(record)
    }
    /// The key, without the table's number.
    type Key: Key;
    /// The record.
    type Record: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
}

/// The full encoding of `key` in table `T`.
#[must_use]
pub fn encode_key<T: Table>(key: &T::Key) -> Vec<u8> {
    encode_prefix::<T>(key)
}

/// Like [`encode_key`], for the rows of a turn; `buffer` is overwritten.
pub(crate) fn row_key<T: Table>(key: &T::Key, buffer: &mut Vec<u8>) -> RowKey {
    buffer.clear();
    encode_parts::<T>(key, buffer);
    RowKey::new(buffer)
}

fn encode_parts<T: Table>(parts: &impl Key, bytes: &mut Vec<u8>) {
    bytes.push(T::NUMBER);
    parts.encode(bytes);
}

/// The encoded prefix of the keys of `T` that begin with the parts in `prefix`.
#[must_use]
pub fn encode_prefix<T: Table>(prefix: &impl Key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_BYTES_COMMON);
    encode_parts::<T>(prefix, &mut bytes);
    bytes
}

/// The keys of `T` that begin with the parts in `prefix`, from `first` on, which begins with them too.
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

/// Encodes a record of `T`.
#[must_use]
pub fn encode_record<T: Table>(record: &T::Record) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROW_BYTES_COMMON);
    T::encode(record, &mut bytes);
    bytes
}

/// Reads a record of `T`.
///
/// # Errors
/// [`DecodeError`] for bytes that this version cannot read: the store is damaged or newer.
pub fn decode_record<T: Table>(bytes: &[u8]) -> Result<T::Record, DecodeError> {
    T::decode(bytes)
}

/// Reads one record of `T`.
///
/// # Errors
/// [`StoreError`] if the store fails or the record cannot be decoded.
pub fn read<T: Table>(reader: &dyn Reader, key: &T::Key) -> Result<Option<T::Record>, StoreError> {
    let Some(bytes) = reader.get(&encode_key::<T>(key))? else {
        return Ok(None);
    };
    Ok(Some(decode_record::<T>(&bytes).map_err(damaged)?))
}

/// Visits the records of `T` in `range` until `visit` breaks.
///
/// # Errors
/// [`StoreError`] if the store fails or a record cannot be decoded.
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
/// [`StoreError`] if the row cannot be decoded as a row of `T`: the store is damaged.
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

/// Declares tables: number, name, key and record; optionally whether decoded records are cached, and which; optionally
/// the size of a record's content, if a caller or a definition decides it; `versions` for a record that has several.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $number:literal $name:ident($key:ty) -> $record:ty
            $(, $hot:ident $(while $is_worked_on:expr)?)?
            $(=> $bytes:expr)?
            $(; $versions:ident)?;
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
                fn content_bytes(record: &Self::Record) -> usize {
                    let bytes: fn(&Self::Record) -> usize = $bytes;
                    bytes(record)
                }
            )?
            $(crate::tables::$versions!();)?
            type Key = $key;
            type Record = $record;
        }
    )*};
}
pub(crate) use tables;

/// Makes a table write and read the versions of its record's type.
macro_rules! versions {
    () => {
        fn encode(record: &Self::Record, bytes: &mut Vec<u8>) {
            crate::codec::encode_into(&crate::persisted::ByVersionRef(record), bytes);
        }
        fn decode(bytes: &[u8]) -> Result<Self::Record, crate::codec::DecodeError> {
            let crate::persisted::ByVersion(record) = crate::codec::decode(bytes)?;
            Ok(record)
        }
    };
}
pub(crate) use versions;

/// Marks a table whose decoded records are cached.
pub(crate) const HOT: bool = true;
