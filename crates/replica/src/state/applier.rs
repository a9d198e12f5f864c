//! The applier: applies committed entries, on its own thread so that nothing starves it; in a
//! simulation as a task.
//!
//! It owns the engine. For each entry it writes one batch: what the engine and the replica's own
//! rows change, the digest and the log id. Only then are the proposer and the subscribers notified.

use crate::clock::StampClock;
use crate::environment::Observer;
use crate::execution::{BlockingPool, JobKind};
use crate::log::record::LogEntry;
use crate::membership::{self, StoredMembership};
use crate::proposal::slots;
use crate::proposal::{Commands, Control, Proposal};
use crate::raft::type_config::{ApplyOutput, LogId, TypeConfig};
use crate::state::agreement::{self, Verdict};
use crate::state::digest;
use crate::state::feed::{AppliedBatch, Feed, Notice};
use crate::state::rows::{self, AppliedPosition, Divergence, RowError};
use crate::state::snapshot::SnapshotData;
use crate::state::store::{SharedReader, StateStore};
use flotilla_engine::codec::DecodeError;
use flotilla_engine::store::{StoreError, Writes};
use flotilla_engine::{ENGINE_VERSION_FIRST, Effect, Engine, NodeId};
use openraft::EntryPayload;
use openraft::storage::ApplyResponder;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

/// The capacity of its queue of entries.
const QUEUE_MAX: usize = 256;
/// The number of indexes whose digest reports are kept.
const REPORTS_KEPT: usize = 4;

/// Why an entry cannot be applied: the process must end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("the entry at index {index} cannot be decoded: {error}")]
    Undecodable { index: u64, error: DecodeError },
    /// The effect of openraft issue 2116 in a release build: entries were purged before they were
    /// applied.
    #[error("expected the entry after index {applied}, but got {found}")]
    Gap { applied: u64, found: u64 },
    #[error("expected a snapshot of {expected:?}, but its rows are those of {found:?}")]
    SnapshotMismatch {
        expected: Option<LogId>,
        found: Option<LogId>,
    },
    #[error(
        "the cluster has agreed on engine version {agreed}, but this binary knows {known} at most: \
         start a newer one"
    )]
    EngineVersion { agreed: u32, known: u32 },
}

/// A job for the applier.
pub(crate) enum Job {
    Apply(LogEntry, Option<ApplyResponder<TypeConfig>>),
    /// Returns once everything before it is done.
    Barrier(oneshot::Sender<io::Result<()>>),
    /// Replaces the state.
    Install(Option<LogId>, SnapshotData, oneshot::Sender<io::Result<()>>),
}

/// The channels through which the rest of the replica learns what was applied.
#[derive(Clone)]
pub(crate) struct AppliedState {
    pub(crate) applied_position: watch::Sender<AppliedPosition>,
    pub(crate) membership: watch::Sender<Arc<StoredMembership>>,
    pub(crate) purge_floor: watch::Sender<u64>,
    /// The engine version on which the cluster has agreed.
    pub(crate) engine_version: watch::Sender<u32>,
    /// The last index that would survive a power cut.
    pub(crate) state_durable: watch::Sender<Option<u64>>,
    pub(crate) divergence: watch::Sender<Option<Divergence>>,
    /// An index at which no majority agreed.
    pub(crate) split: watch::Sender<Option<u64>>,
    /// The applied position at the last index at which all replicas report their digests.
    pub(crate) checkpoints: watch::Sender<AppliedPosition>,
    pub(crate) feed: Feed,
    pub(crate) counters: Arc<ApplyCounters>,
}

impl AppliedState {
    pub(crate) fn new() -> Self {
        Self {
            applied_position: watch::Sender::default(),
            membership: watch::Sender::default(),
            purge_floor: watch::Sender::default(),
            engine_version: watch::Sender::new(ENGINE_VERSION_FIRST),
            state_durable: watch::Sender::default(),
            divergence: watch::Sender::default(),
            split: watch::Sender::default(),
            checkpoints: watch::Sender::default(),
            feed: Feed::new(),
            counters: Arc::default(),
        }
    }
}

/// The counters since the start.
#[derive(Debug, Default)]
pub(crate) struct ApplyCounters {
    pub(crate) entries: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Snapshots taken of the state.
    pub(crate) snapshots_made: AtomicU64,
    /// Snapshots of other members that replaced the state.
    pub(crate) snapshots_installed: AtomicU64,
    /// How long the applier was busy.
    pub(crate) busy_micros: AtomicU64,
}

/// What the applier works with.
pub(crate) struct Applier {
    pub(crate) node_id: u64,
    /// Digests are compared at multiples of this index.
    pub(crate) digest_interval: u64,
    /// The newest engine version that this binary knows.
    pub(crate) engine_version: u32,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) clock: Arc<StampClock>,
    pub(crate) applied_state: AppliedState,
    pub(crate) observer: Arc<dyn Observer>,
}

/// The result of applying one entry.
#[derive(Default)]
struct Applied {
    writes: Writes,
    output: ApplyOutput,
    effects: Vec<Effect>,
    offers: Vec<(u64, u32)>,
    proposer: NodeId,
    now_ms: Option<u64>,
    after: Vec<After>,
}

/// What is reported once the batch is written.
enum After {
    Membership(StoredMembership),
    PurgeFloor(u64),
    EngineVersion(u32),
    Divergence(Divergence),
    Split(u64),
}

impl Applier {
    /// Opens the engine over the store, and processes jobs until the returned sender is dropped.
    pub(crate) fn spawn(
        self,
        blocking_pool: &BlockingPool,
    ) -> Result<mpsc::Sender<Job>, ApplyError> {
        let mut active = self.open()?;
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let name = format!("apply-{}", active.applier.node_id);
        blocking_pool
            .serve(name, JobKind::Apply, receiver, move |job, _| {
                active.work(job)
            })
            .map_err(|error| StoreError(Box::new(error)))?;
        Ok(sender)
    }

    /// Opens the engine over the store.
    pub(crate) fn open(self) -> Result<ActiveApplier, ApplyError> {
        let reader = self.store.reader();
        let engine = Engine::open(reader.as_ref(), rows::engine_version(reader.as_ref())?)?;
        let applied_position = rows::applied_position(reader.as_ref())?;
        let applied_state = &self.applied_state;
        applied_state
            .membership
            .send_replace(Arc::new(rows::stored_membership(reader.as_ref())?));
        applied_state
            .purge_floor
            .send_replace(rows::purge_floor(reader.as_ref())?);
        applied_state
            .engine_version
            .send_replace(rows::engine_version(reader.as_ref())?);
        applied_state
            .state_durable
            .send_replace(applied_position.index());
        applied_state
            .applied_position
            .send_replace(applied_position);
        self.clock.observe(applied_position.now_ms);
        Ok(ActiveApplier {
            applier: self,
            engine,
            reader,
            applied_position,
            failure: None,
        })
    }
}

/// An applier with its open engine; on its own thread or as a task.
pub(crate) struct ActiveApplier {
    applier: Applier,
    engine: Engine,
    reader: Arc<dyn SharedReader>,
    applied_position: AppliedPosition,
    failure: Option<String>,
}

impl ActiveApplier {
    fn work(&mut self, job: Job) {
        match job {
            Job::Apply(entry, responder) => {
                let start = Instant::now();
                let mut written_bytes = 0;
                if self.failure.is_none() {
                    match self.apply(entry, responder) {
                        Ok(bytes) => written_bytes = bytes,
                        Err(error) => self.failure = Some(error.to_string()),
                    }
                }
                let time = start.elapsed();
                self.applier.observer.entry_applied(time, written_bytes);
                let busy = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                let counters = &self.applier.applied_state.counters;
                counters.busy_micros.fetch_add(busy, Ordering::Relaxed);
            }
            Job::Barrier(sender) => drop(sender.send(self.result())),
            Job::Install(log_id, snapshot, sender) => {
                if self.failure.is_none()
                    && let Err(error) = self.install(log_id, snapshot)
                {
                    self.failure = Some(error.to_string());
                }
                drop(sender.send(self.result()));
            }
        }
    }

    fn result(&self) -> io::Result<()> {
        self.failure
            .as_ref()
            .map_or(Ok(()), |text| Err(io::Error::other(text.clone())))
    }

    /// Applies the next entry; returns how many bytes of state it wrote.
    ///
    /// # Errors
    /// [`ApplyError`]: no further entry can be applied.
    pub(crate) fn apply(
        &mut self,
        entry: LogEntry,
        responder: Option<ApplyResponder<TypeConfig>>,
    ) -> Result<usize, ApplyError> {
        let log_id = entry.log_id;
        let index = log_id.index();
        if let Some(applied) = self.applied_position.index()
            && index != applied + 1
        {
            return Err(ApplyError::Gap {
                applied,
                found: index,
            });
        }
        let mut applied = match entry.payload {
            EntryPayload::Blank => Applied::default(),
            EntryPayload::Normal(Proposal::Commands(commands)) => {
                self.carry_out(index, &commands)?
            }
            EntryPayload::Normal(Proposal::Control(control)) => self.control(control)?,
            EntryPayload::Membership(membership) => {
                self.change_members(StoredMembership::new(Some(log_id), membership))?
            }
        };
        self.applied_position = AppliedPosition {
            log_id: Some(log_id),
            digest: digest::chain(self.applied_position.digest, index, &applied.writes),
            now_ms: applied.now_ms.unwrap_or(self.applied_position.now_ms),
        };
        rows::put_applied_position(&mut applied.writes, &self.applied_position);
        let written_bytes = applied.writes.bytes();
        self.applier.store.write(&applied.writes)?;
        self.announce(log_id, applied, responder);
        Ok(written_bytes)
    }

    fn carry_out(&mut self, index: u64, commands: &Commands) -> Result<Applied, ApplyError> {
        let entry = commands
            .entry()
            .map_err(|error| ApplyError::Undecodable { index, error })?;
        let applied = self.engine.apply(self.reader.as_ref(), index, &entry)?;
        let counters = &self.applier.applied_state.counters;
        counters
            .commands
            .fetch_add(entry.commands.len() as u64, Ordering::Relaxed);
        let observer = &self.applier.observer;
        observer.commands_applied(&entry, &applied.replies);
        self.applier.clock.observe(applied.now_ms);
        Ok(Applied {
            writes: applied.writes,
            output: ApplyOutput {
                replies: applied.replies,
            },
            effects: applied.effects,
            offers: slots(&entry.offers),
            proposer: entry.stamp.node,
            now_ms: Some(applied.now_ms),
            after: Vec::new(),
        })
    }

    /// Stores the current members, and those that were removed.
    fn change_members(&self, stored: StoredMembership) -> Result<Applied, ApplyError> {
        let mut applied = Applied::default();
        let reader = self.reader.as_ref();
        let before = rows::stored_membership(reader)?;
        let mut retired = rows::retired(reader)?;
        let retired_count = retired.len();
        let removed = before.nodes().map(|(node_id, _)| *node_id);
        retired.extend(removed.filter(|node_id| stored.get_node(node_id).is_none()));
        if retired.len() > retired_count {
            rows::put_retired(&mut applied.writes, &retired);
        }
        rows::put_membership(&mut applied.writes, &stored);
        applied.after.push(After::Membership(stored));
        Ok(applied)
    }

    fn control(&mut self, control: Control) -> Result<Applied, ApplyError> {
        let mut applied = Applied::default();
        match control {
            Control::PurgeFloor { index } => {
                if index > rows::purge_floor(self.reader.as_ref())? {
                    rows::put_purge_floor(&mut applied.writes, index);
                    applied.after.push(After::PurgeFloor(index));
                }
            }
            Control::DigestReport {
                node,
                index,
                digest,
            } => {
                self.compare_digests(&mut applied, index, node, digest)?;
            }
            Control::RaiseEngineVersion { version } => {
                self.check_known(version)?;
                if version > rows::engine_version(self.reader.as_ref())? {
                    rows::put_engine_version(&mut applied.writes, version);
                    self.engine.set_version(version);
                    applied.after.push(After::EngineVersion(version));
                }
            }
        }
        Ok(applied)
    }

    /// Refuses an engine version by which this binary would decide differently from the others.
    fn check_known(&self, agreed: u32) -> Result<(), ApplyError> {
        let known = self.applier.engine_version;
        if agreed > known {
            return Err(ApplyError::EngineVersion { agreed, known });
        }
        Ok(())
    }

    fn compare_digests(
        &self,
        applied: &mut Applied,
        index: u64,
        node: u64,
        digest: u128,
    ) -> Result<(), ApplyError> {
        let reader = self.reader.as_ref();
        let mut reports = rows::digest_reports(reader, index)?;
        reports.insert(node, digest);
        rows::trim_digest_reports(reader, &mut applied.writes, REPORTS_KEPT)?;
        rows::put_digest_reports(&mut applied.writes, index, &reports);
        let membership = rows::stored_membership(reader)?;
        let voters: BTreeSet<u64> = membership::voters(membership.membership());
        match agreement::judge(&reports, &voters) {
            Verdict::Open => {}
            Verdict::Split => applied.after.push(After::Split(index)),
            Verdict::Majority { digest, minority } => {
                // Reports of a replaced state prove nothing about this one. They may still be among
                // the reports that came with it, or in flight.
                let is_own = index > rows::reports_void(reader)?;
                if is_own && minority.contains(&self.applier.node_id) {
                    let ours = reports[&self.applier.node_id];
                    let divergence = Divergence {
                        index,
                        ours,
                        majority: digest,
                    };
                    applied.after.push(After::Divergence(divergence));
                }
            }
        }
        Ok(())
    }

    fn announce(
        &self,
        log_id: LogId,
        applied: Applied,
        responder: Option<ApplyResponder<TypeConfig>>,
    ) {
        let applied_state = &self.applier.applied_state;
        applied_state
            .counters
            .entries
            .fetch_add(1, Ordering::Relaxed);
        // Before the progress: a caller that waited for this entry must not continue with a state
        // that the entry has proven wrong.
        for after in applied.after {
            self.tell(after);
        }
        applied_state
            .applied_position
            .send_replace(self.applied_position);
        if let Some(responder) = responder {
            responder.send(applied.output);
        }
        if log_id.index().is_multiple_of(self.applier.digest_interval) {
            applied_state
                .checkpoints
                .send_replace(self.applied_position);
        }
        if !applied.effects.is_empty() || !applied.offers.is_empty() {
            applied_state
                .feed
                .publish(Notice::Applied(Arc::new(AppliedBatch {
                    index: log_id.index(),
                    term: membership::term_of(&log_id),
                    node: applied.proposer,
                    now_ms: self.applied_position.now_ms,
                    offers: applied.offers,
                    effects: applied.effects,
                })));
        }
    }

    fn tell(&self, after: After) {
        let applied_state = &self.applier.applied_state;
        match after {
            After::Membership(stored) => {
                drop(applied_state.membership.send_replace(Arc::new(stored)))
            }
            After::PurgeFloor(index) => drop(applied_state.purge_floor.send_replace(index)),
            After::EngineVersion(version) => {
                tracing::info!(version, "all members know this engine version, and use it");
                applied_state.engine_version.send_replace(version);
            }
            After::Split(index) => drop(applied_state.split.send_replace(Some(index))),
            After::Divergence(divergence) => {
                applied_state.divergence.send_replace(Some(divergence));
            }
        }
    }

    /// Installs a snapshot in place of the state, durably, and keeps it as this node's own.
    fn install(
        &mut self,
        expected: Option<LogId>,
        snapshot: SnapshotData,
    ) -> Result<(), ApplyError> {
        let store = &self.applier.store;
        let mut incoming = snapshot.into_incoming(store.as_ref())?;
        let found = rows::applied_position(incoming.reader())?.log_id;
        if found != expected {
            return Err(ApplyError::SnapshotMismatch { expected, found });
        }
        self.check_known(rows::engine_version(incoming.reader())?)?;
        incoming.write(&self.local_rows(expected)?)?;
        incoming.install()?;
        store.capture()?;
        self.reader = store.reader();
        let version = rows::engine_version(self.reader.as_ref())?;
        self.engine = Engine::open(self.reader.as_ref(), version)?;
        self.applied_position = rows::applied_position(self.reader.as_ref())?;
        let applied_state = &self.applier.applied_state;
        applied_state
            .membership
            .send_replace(Arc::new(rows::stored_membership(self.reader.as_ref())?));
        applied_state
            .purge_floor
            .send_replace(rows::purge_floor(self.reader.as_ref())?);
        applied_state
            .engine_version
            .send_replace(rows::engine_version(self.reader.as_ref())?);
        applied_state
            .state_durable
            .send_replace(self.applied_position.index());
        applied_state
            .applied_position
            .send_replace(self.applied_position);
        applied_state.feed.publish(Notice::Lost);
        let installed = &applied_state.counters.snapshots_installed;
        installed.fetch_add(1, Ordering::Relaxed);
        self.applier.clock.observe(self.applied_position.now_ms);
        Ok(())
    }

    /// What is kept of this node's own rows when the state after the entry `taken` replaces this
    /// one.
    fn local_rows(&self, taken: Option<LogId>) -> Result<Writes, ApplyError> {
        let reader = self.reader.as_ref();
        let mut writes = Writes::new();
        if let Some(identity) = rows::identity(reader)? {
            rows::put_identity(&mut writes, &identity);
        }
        let taken = taken.map_or(0, |log_id| log_id.index());
        let reported = self.applied_position.index().unwrap_or(0).max(taken);
        rows::put_reports_void(&mut writes, reported.max(rows::reports_void(reader)?));
        Ok(writes)
    }
}
