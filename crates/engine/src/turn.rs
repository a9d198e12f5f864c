//! A turn: the execution of one command, with its reads and the writes, events and effects that it collects.

mod abort;
mod action_run_sets;
mod attribution;
mod budget;
mod chance;
mod draft;
mod run_before;
mod run_events;
mod run_scopes;
mod runs;
mod scan;

use attribution::Attribution;
use budget::Visited;
pub use budget::{Budgets, Spent};

pub(crate) use abort::{Abort, TurnResult};
pub(crate) use draft::Draft;
pub(crate) use run_before::RunBefore;
pub(crate) use runs::{ActivationRef, LoadedRun, NewVisit};

use runs::TurnRuns;

use chance::Chance;

use crate::access::Actor;
use crate::cache::Cache;
use crate::command_scope::CommandScope;
use crate::effect::Effect;
use crate::heads::QueueHeads;
use crate::ids::{
    ActionRunNumber, GroupNumber, Namespace, NodeId, RequestId, RunNumber, StreamNumber,
};
use crate::limits::{ENTRY_WRITTEN_BYTES_MAX, RECORD_BYTES_MAX, RECORD_CONTENT_BYTES_MAX};
use crate::offer::Offer;
use crate::overlay::{Cell, Overlay};
use crate::quota;
use crate::stamp::Stamp;
use crate::store::{Reader, StoreError, Writes};
use crate::tables::{
    ActionRunOwner, ActionRunRecord, Cluster, ClusterRecord, DefinitionNumber, Quarantine,
    QuarantinedItem, QuarantinedKind, ROW_BYTES_COMMON, RequestAgeRecord, RequestAges, RowKey,
    RowSource, Table, TimerKey, Timers, damaged, decode_record, row_key,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row of a table, decoded.
pub(crate) type Row<T> = (<T as Table>::Key, Arc<<T as Table>::Record>);

/// The state that all turns of an entry share.
pub(crate) struct EntryState<'a> {
    store: &'a dyn Reader,
    cache: &'a mut Cache,
    heads: &'a mut QueueHeads,
    quarantined: &'a mut BTreeSet<QuarantinedItem>,
    version: u32,
    budgets: Budgets,
    spent: Spent,
    attribution: Attribution,
    overlay: &'a mut Overlay,
    stamp: Stamp,
    now_ms: u64,
    raft_index: u64,
    offers: &'a [Offer],
    slots_left: Vec<u32>,
    cluster: ClusterRecord,
    /// The namespace of the last accepted command that has written to one, if it is certain to exist.
    namespace: Option<Namespace>,
    /// The request ids that the entry's commands have left to be remembered.
    requests: RequestAgeRecord,
    /// Where keys are encoded.
    key_buffer: Vec<u8>,
}

/// The inputs from which an entry is applied.
pub(crate) struct Source<'a> {
    pub(crate) store: &'a dyn Reader,
    pub(crate) cache: &'a mut Cache,
    pub(crate) heads: &'a mut QueueHeads,
    pub(crate) quarantined: &'a mut BTreeSet<QuarantinedItem>,
    /// Receives the writes of the entry; empty before the entry.
    pub(crate) overlay: &'a mut Overlay,
    /// The agreed engine version.
    pub(crate) version: u32,
    pub(crate) budgets: Budgets,
}

impl<'a> EntryState<'a> {
    pub(crate) fn new(
        source: Source<'a>,
        raft_index: u64,
        stamp: Stamp,
        offers: &'a [Offer],
    ) -> Self {
        assert!(
            source.overlay.is_empty(),
            "an entry leaves no writes to the next"
        );
        Self {
            store: source.store,
            cache: source.cache,
            heads: source.heads,
            quarantined: source.quarantined,
            version: source.version,
            budgets: source.budgets,
            spent: Spent::default(),
            attribution: Attribution::default(),
            overlay: source.overlay,
            stamp,
            now_ms: stamp.now_ms,
            raft_index,
            slots_left: offers.iter().map(|offer| offer.slots).collect(),
            offers,
            cluster: ClusterRecord::default(),
            namespace: None,
            requests: RequestAgeRecord::default(),
            key_buffer: Vec::new(),
        }
    }

    /// Loads the cluster's record and advances its clock to the entry's time; it never goes back (design rule 1).
    pub(crate) fn advance_clock(&mut self) -> Result<u64, StoreError> {
        let key = self.row_key::<Cluster>(&());
        if let Some(cluster) = stored::<Cluster>(self.store, self.cache, key.as_slice())? {
            self.cluster = *cluster;
        }
        self.now_ms = self.stamp.now_ms.max(self.cluster.now_ms);
        self.cluster.now_ms = self.now_ms;
        Ok(self.now_ms)
    }

    /// Treats the subject as quarantined from now on.
    pub(crate) fn quarantine(&mut self, subject: QuarantinedItem) {
        self.quarantined.insert(subject);
    }

    /// The budget that the entry's turns have used so far.
    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// Encodes the entry's writes and updates the cache.
    pub(crate) fn finish(mut self) -> Writes {
        self.write_own_rows();
        let count = self.overlay.len();
        let common_bytes = count * ROW_BYTES_COMMON;
        let bytes = common_bytes.max(self.spent.written_bytes.min(ENTRY_WRITTEN_BYTES_MAX));
        let mut writes = Writes::with_capacity(count, bytes);
        for (key, cell) in self.overlay.sorted() {
            let Some(cell) = cell else {
                self.cache.forget(key.as_slice());
                writes.push_deletion(key.as_slice());
                continue;
            };
            let bytes = writes.push(key.as_slice(), |bytes| cell.encode_into(bytes));
            assert!(
                bytes <= RECORD_BYTES_MAX,
                "expected a record of at most {RECORD_BYTES_MAX} bytes, but it has {bytes}"
            );
            self.heads.follow(key.as_slice());
            self.cache.follow(key.bytes(), cell, bytes);
        }
        self.overlay.clear();
        writes
    }

    fn row_key<T: Table>(&mut self, key: &T::Key) -> RowKey {
        row_key::<T>(key, &mut self.key_buffer)
    }

    /// Writes the rows that belong to the entry as a whole.
    fn write_own_rows(&mut self) {
        self.put::<Cluster>(&(), Arc::new(self.cluster));
        if self.requests.by_scope.is_empty() {
            return;
        }
        self.requests.at_ms = self.now_ms;
        let requests = std::mem::take(&mut self.requests);
        let index = self.raft_index;
        self.put::<RequestAges>(&index, Arc::new(requests));
    }

    fn put<T: Table>(&mut self, key: &T::Key, record: Arc<T::Record>) {
        let key = self.row_key::<T>(key);
        self.overlay.set(key, Some(Cell::new::<T>(record)));
    }
}

/// One command's view of the state, and the changes that it makes.
pub(crate) struct Turn<'t, 'e> {
    entry: &'t mut EntryState<'e>,
    slots_taken: BTreeMap<usize, u32>,
    runs: TurnRuns,
    spent: Spent,
    /// What scans visited; not included in `spent`.
    visited: Visited,
    effects: Vec<Effect>,
    chance: Chance,
    /// The cluster's record, with the turn's changes.
    cluster: ClusterRecord,
    /// On whose behalf the command is carried out.
    actor: Actor,
    /// The namespace of the command, if it is certain to exist after it.
    namespace: Option<Namespace>,
    /// The command's request id that is to be remembered, and the bytes that it counts for.
    request: Option<(CommandScope, RequestId, u64)>,
    /// The items that this turn releases from quarantine; the releases become visible to other turns on commit.
    released: BTreeSet<QuarantinedItem>,
    /// What namespaces use from now on, to be written at the end (X38).
    use_changes: quota::Changes,
    /// Whether the command begins new work and has a request id, so that quotas of commands hold.
    asks_for_command: bool,
}

impl<'t, 'e> Turn<'t, 'e> {
    /// Begins the turn of the command at `position` in its entry, on behalf of the cluster itself.
    pub(crate) fn new(entry: &'t mut EntryState<'e>, position: u64) -> Self {
        // The subject of an earlier command must not be blamed for a panic in this one.
        entry.attribution.clear();
        let chance = Chance::new(entry.stamp.seed, position);
        Self {
            cluster: entry.cluster,
            actor: Actor::System,
            namespace: None,
            request: None,
            entry,
            slots_taken: BTreeMap::new(),
            runs: TurnRuns::default(),
            spent: Spent::default(),
            visited: Visited::default(),
            effects: Vec::new(),
            chance,
            released: BTreeSet::new(),
            use_changes: quota::Changes::new(),
            asks_for_command: false,
        }
    }

    /// Continues on behalf of the actor.
    pub(crate) fn act_for(&mut self, actor: &Actor) {
        self.actor = actor.clone();
    }

    /// On whose behalf the command is carried out.
    pub(crate) fn actor(&self) -> Actor {
        self.actor.clone()
    }

    /// The entry's time, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.entry.now_ms
    }

    /// The entry's index in the log.
    pub(crate) fn raft_index(&self) -> u64 {
        self.entry.raft_index
    }

    /// The leader that proposed the entry.
    pub(crate) fn node(&self) -> NodeId {
        self.entry.stamp.node
    }

    /// The record at `key`.
    pub(crate) fn get<T: Table>(
        &mut self,
        key: &T::Key,
    ) -> Result<Option<Arc<T::Record>>, StoreError> {
        let key = self.entry.row_key::<T>(key);
        self.record_at::<T>(&key)
    }

    fn record_at<T: Table>(&mut self, key: &RowKey) -> Result<Option<Arc<T::Record>>, StoreError> {
        let record = match self.entry.overlay.get(key) {
            Some(cell) => cell.map(Cell::record::<T>),
            None => stored::<T>(self.entry.store, self.entry.cache, key.as_slice())?,
        };
        self.count_read::<T>(record.as_deref());
        Ok(record)
    }

    fn count_read<T: Table>(&mut self, record: Option<&T::Record>) {
        self.spent.rows += 1;
        self.spent.read_bytes += record.map_or(0, T::content_bytes);
    }

    /// The record at `key` as a draft, to be changed and put back. The cache gives it away, so that the change needs no
    /// copy.
    pub(crate) fn draft<T: Table>(
        &mut self,
        key: &T::Key,
    ) -> Result<Option<Draft<T::Record>>, StoreError> {
        let key = self.entry.row_key::<T>(key);
        if self.entry.overlay.get(&key).is_none()
            && let Some(record) = self.entry.cache.take::<T>(key.as_slice())
        {
            self.count_read::<T>(Some(&record));
            return Ok(Some(Draft::of(record)));
        }
        Ok(self.record_at::<T>(&key)?.map(Draft::of))
    }

    /// Changes the record at `key`, if it exists; returns the result of `change`.
    pub(crate) fn edit<T: Table, R>(
        &mut self,
        key: &T::Key,
        edit: impl FnOnce(&mut T::Record) -> R,
    ) -> Result<Option<R>, StoreError> {
        let key = self.entry.row_key::<T>(key);
        if let Some((record, is_first)) = self.entry.overlay.get_mut::<T>(&key) {
            let result = edit(record);
            let content_bytes = checked_content_bytes::<T>(record);
            if is_first {
                self.spent.rows += 1;
                self.spent.written_bytes += written_bytes(&key, content_bytes);
            }
            return Ok(Some(result));
        }
        let Some(record) = self.record_at::<T>(&key)? else {
            return Ok(None);
        };
        let mut record = Draft::of(record);
        let result = edit(&mut record);
        self.set::<T>(key, record.into());
        Ok(Some(result))
    }

    /// Writes the record at `key`.
    pub(crate) fn put<T: Table>(&mut self, key: &T::Key, record: impl Into<Arc<T::Record>>) {
        let key = self.entry.row_key::<T>(key);
        self.spent.rows += 1;
        self.set::<T>(key, record.into());
    }

    /// Counts and makes a write.
    ///
    /// # Panics
    /// Like [`checked_content_bytes`].
    fn set<T: Table>(&mut self, key: RowKey, record: Arc<T::Record>) {
        let content_bytes = checked_content_bytes::<T>(&record);
        self.spent.written_bytes += written_bytes(&key, content_bytes);
        self.entry.overlay.set(key, Some(Cell::new::<T>(record)));
    }

    /// Deletes the record at `key`.
    pub(crate) fn delete<T: Table>(&mut self, key: &T::Key) {
        self.spent.rows += 1;
        let key = self.entry.row_key::<T>(key);
        self.spent.written_bytes += key.as_slice().len();
        self.entry.overlay.set(key, None);
    }

    /// Whether the turn has written or deleted anything so far.
    pub(crate) fn has_writes(&self) -> bool {
        self.entry.overlay.has_writes_of_turn() || self.cluster != self.entry.cluster
    }

    /// The cluster's record.
    pub(crate) fn cluster(&self) -> &ClusterRecord {
        &self.cluster
    }

    /// The cluster's record, to be changed.
    pub(crate) fn cluster_mut(&mut self) -> &mut ClusterRecord {
        &mut self.cluster
    }

    /// Increments a sequence of the cluster and returns its new value.
    pub(crate) fn next_number(&mut self, sequence: fn(&mut ClusterRecord) -> &mut u64) -> u64 {
        let number = sequence(&mut self.cluster);
        *number += 1;
        *number
    }

    /// Adds the command's request id to those that the entry has accepted; it counts for `bytes`.
    pub(crate) fn accept_request(&mut self, scope: &CommandScope, id: RequestId, bytes: u64) {
        let replaced = self.request.replace((scope.clone(), id, bytes));
        assert!(replaced.is_none(), "a command has one request id");
    }

    /// What the turn has noted of the use of namespaces.
    pub(crate) fn use_changes(&mut self) -> &mut quota::Changes {
        &mut self.use_changes
    }

    /// Notes that quotas of commands hold for the command.
    pub(crate) fn ask_for_command(&mut self) {
        self.asks_for_command = true;
    }

    /// Whether quotas of commands hold for the command.
    pub(crate) fn asks_for_command(&self) -> bool {
        self.asks_for_command
    }

    /// Whether the last accepted command of the entry that wrote to a namespace wrote to this one, which still exists.
    pub(crate) fn is_of_last_command(&self, namespace: &Namespace) -> bool {
        self.entry.namespace.as_ref() == Some(namespace)
    }

    /// Notes that the namespace of the command exists after the command.
    pub(crate) fn set_namespace(&mut self, namespace: &Namespace) {
        self.namespace = Some(namespace.clone());
    }

    /// Notes that the command may have deleted its namespace.
    pub(crate) fn forget_namespace(&mut self) {
        self.entry.namespace = None;
    }

    /// Sets a timer.
    ///
    /// # Panics
    /// If its time has passed: drivers no longer look there.
    pub(crate) fn set_timer(&mut self, timer: TimerKey) {
        assert!(
            timer.due_ms >= self.now_ms(),
            "a timer is set for a time to come"
        );
        self.put::<Timers>(&timer, ());
        self.effects.push(Effect::ArmTimer {
            due_ms: timer.due_ms,
        });
    }

    /// Clears a timer, if it is set.
    pub(crate) fn clear_timer(&mut self, timer: TimerKey) {
        self.delete::<Timers>(&timer);
    }

    /// Adds an effect.
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Releases the item from quarantine when the turn commits, if it is quarantined (design rule 10).
    pub(crate) fn release_quarantined(&mut self, item: QuarantinedItem) {
        if self.is_in_quarantine(item) {
            self.delete::<Quarantine>(&item);
            self.released.insert(item);
        }
    }

    fn is_in_quarantine(&self, item: QuarantinedItem) -> bool {
        !self.released.contains(&item) && self.entry.quarantined.contains(&item)
    }

    /// Whether the agreed engine version is at least this one (design rule 12).
    pub(crate) fn has_agreed_on(&self, version: u32) -> bool {
        self.entry.version >= version
    }

    /// Whether the run is quarantined (design rule 10).
    pub(crate) fn is_quarantined(&self, run: RunNumber) -> bool {
        self.is_in_quarantine((QuarantinedKind::Run, run.0))
    }

    /// Whether the schedule of the definition is quarantined.
    pub(crate) fn is_schedule_quarantined(&self, definition: DefinitionNumber) -> bool {
        self.is_in_quarantine((QuarantinedKind::Schedule, definition.0))
    }

    /// Whether the trigger of the definition is quarantined.
    pub(crate) fn is_trigger_quarantined(&self, definition: DefinitionNumber) -> bool {
        self.is_in_quarantine((QuarantinedKind::Trigger, definition.0))
    }

    /// Whether the stream is quarantined.
    pub(crate) fn is_stream_quarantined(&self, stream: StreamNumber) -> bool {
        self.is_in_quarantine((QuarantinedKind::Stream, stream.0))
    }

    /// Whether the consumer group is quarantined.
    pub(crate) fn is_group_quarantined(&self, group: GroupNumber) -> bool {
        self.is_in_quarantine((QuarantinedKind::Group, group.0))
    }

    /// Whether the action run, or the run that it belongs to, is quarantined.
    pub(crate) fn is_task_quarantined(
        &self,
        number: ActionRunNumber,
        record: &ActionRunRecord,
    ) -> bool {
        match record.owner {
            ActionRunOwner::Step { run, .. } => self.is_quarantined(run),
            ActionRunOwner::Caller => self.is_in_quarantine((QuarantinedKind::ActionRun, number.0)),
        }
    }

    /// The entry's offers.
    pub(crate) fn offers(&self) -> &'e [Offer] {
        self.entry.offers
    }

    /// The number of free slots of the offer at `position`.
    pub(crate) fn slots_left(&self, position: usize) -> u32 {
        let taken = self.slots_taken.get(&position).copied().unwrap_or(0);
        self.entry
            .slots_left
            .get(position)
            .copied()
            .unwrap_or(0)
            .saturating_sub(taken)
    }

    /// Takes a slot of the offer at `position`.
    pub(crate) fn take_slot(&mut self, position: usize) {
        assert!(
            self.slots_left(position) > 0,
            "a slot is taken only where one is free"
        );
        *self.slots_taken.entry(position).or_default() += 1;
    }

    /// Keeps the turn's writes and returns its effects.
    pub(crate) fn commit(mut self) -> Vec<Effect> {
        assert!(
            self.runs.is_empty(),
            "runs are written before a turn is committed"
        );
        assert!(
            self.use_changes.is_empty(),
            "the use of namespaces is written before a turn is committed"
        );
        for (position, taken) in &self.slots_taken {
            self.entry.slots_left[*position] -= taken;
        }
        for item in &self.released {
            self.entry.quarantined.remove(item);
        }
        if let Some((scope, id, bytes)) = self.request.take() {
            self.entry.requests.add(&scope, id.0, bytes);
        }
        self.entry.cluster = self.cluster;
        if let Some(namespace) = self.namespace.take() {
            self.entry.namespace = Some(namespace);
        }
        self.entry.overlay.keep_turn();
        std::mem::take(&mut self.effects)
    }
}

impl RowSource for Turn<'_, '_> {
    fn row<T: Table>(&mut self, key: &T::Key) -> Result<Option<Arc<T::Record>>, StoreError> {
        self.get::<T>(key)
    }

    fn now_ms(&self) -> u64 {
        self.now_ms()
    }
}

impl Drop for Turn<'_, '_> {
    /// Rolls back the writes of a turn that was not committed, after a rejection or a panic.
    fn drop(&mut self) {
        self.entry.overlay.drop_turn();
        self.entry.spent.add(self.spent());
    }
}

/// The size of the record's content, in bytes.
///
/// # Panics
/// If it is larger than that of any record may be: here, a bug quarantines one subject only (design rule 10).
fn checked_content_bytes<T: Table>(record: &T::Record) -> usize {
    let content_bytes = T::content_bytes(record);
    assert!(
        content_bytes <= RECORD_CONTENT_BYTES_MAX,
        "expected a record with at most {RECORD_CONTENT_BYTES_MAX} bytes of content, but it has {content_bytes}"
    );
    content_bytes
}

/// What a write counts for in the budget, in bytes.
fn written_bytes(key: &RowKey, content_bytes: usize) -> usize {
    key.as_slice().len() + ROW_BYTES_COMMON + content_bytes
}

/// The stored record at the full key `bytes`.
fn stored<T: Table>(
    store: &dyn Reader,
    cache: &mut Cache,
    bytes: &[u8],
) -> Result<Option<Arc<T::Record>>, StoreError> {
    if let Some(kept) = cache.get::<T>(bytes) {
        return Ok(kept);
    }
    let Some(value) = store.get(bytes)? else {
        cache.keep::<T>(bytes, None, 0);
        return Ok(None);
    };
    let record = Arc::new(decode_record::<T>(&value).map_err(damaged)?);
    cache.keep::<T>(bytes, Some(&record), value.len());
    Ok(Some(record))
}
