//! Applying committed entries, on a thread of its own so that nothing starves it; in a simulation as a task.
//!
//! It owns the engine. For each entry it writes one batch: what the engine and the replica's
//! own rows change, the digest and the log id. Only then are the proposer and the subscribers told.

use crate::clock::StampClock;
use crate::execution::{Chore, Chores};
use crate::hooks::Observer;
use crate::log::record::LogEntry;
use crate::membership::{self, StoredMembership};
use crate::proposal::{Commands, Control, Proposal};
use crate::raft::type_config::{LogId, Outcome, TypeConfig};
use crate::state::agreement::{self, Verdict};
use crate::state::digest;
use crate::state::feed::{AppliedBatch, Feed, Notice};
use crate::state::rows::{self, Divergence, Progress, RowError};
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

/// Entries handed over before the applier has taken them.
const QUEUE_MAX: usize = 256;
/// Digest reports are kept for so many indexes.
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
    /// What openraft issue 2116 leads to in a release build: entries were purged unapplied.
    #[error("expected the entry after index {applied}, but got {found}")]
    Gap { applied: u64, found: u64 },
    #[error("expected a snapshot of {expected:?}, but its rows stand at {found:?}")]
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

/// What the applier is asked to do.
pub(crate) enum Job {
    Apply(LogEntry, Option<ApplyResponder<TypeConfig>>),
    /// Answers once everything before it is done.
    Barrier(oneshot::Sender<io::Result<()>>),
    /// Replaces the state.
    Install(Option<LogId>, SnapshotData, oneshot::Sender<io::Result<()>>),
}

/// What the rest of the replica learns from applying.
#[derive(Clone)]
pub(crate) struct Outlets {
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) membership: watch::Sender<Arc<StoredMembership>>,
    pub(crate) purge_floor: watch::Sender<u64>,
    /// The engine version on which the cluster has agreed.
    pub(crate) engine_version: watch::Sender<u32>,
    /// The last index that a power cut would leave.
    pub(crate) state_durable: watch::Sender<Option<u64>>,
    pub(crate) divergence: watch::Sender<Option<Divergence>>,
    /// An index at which no majority agreed.
    pub(crate) split: watch::Sender<Option<u64>>,
    /// Where the state stood at the last index at which all replicas report their digests.
    pub(crate) checkpoints: watch::Sender<Progress>,
    pub(crate) feed: Feed,
    pub(crate) counters: Arc<ApplyCounters>,
}

impl Outlets {
    pub(crate) fn new() -> Self {
        Self {
            progress: watch::Sender::default(),
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

/// How much was applied since the start.
#[derive(Debug, Default)]
pub(crate) struct ApplyCounters {
    pub(crate) entries: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Snapshots that were made of it.
    pub(crate) snapshots_made: AtomicU64,
    /// Snapshots of other members that took the state's place.
    pub(crate) snapshots_installed: AtomicU64,
    /// How long the applier was at it.
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
    pub(crate) outlets: Outlets,
    pub(crate) observer: Arc<dyn Observer>,
}

/// What applying one entry gave.
#[derive(Default)]
struct Applied {
    writes: Writes,
    outcome: Outcome,
    effects: Vec<Effect>,
    offers: Vec<(u64, u32)>,
    proposer: NodeId,
    now_ms: Option<u64>,
    after: Vec<After>,
}

/// What is to be told once the batch is written.
enum After {
    Membership(StoredMembership),
    PurgeFloor(u64),
    EngineVersion(u32),
    Divergence(Divergence),
    Split(u64),
}

impl Applier {
    /// Opens the engine over the store, and works off what is sent until the returned sender is gone.
    pub(crate) fn spawn(self, chores: &Chores) -> Result<mpsc::Sender<Job>, ApplyError> {
        let mut active = self.open()?;
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let name = format!("apply-{}", active.applier.node_id);
        chores
            .serve((name, Chore::Apply), receiver, move |job, _| {
                active.work(job)
            })
            .map_err(|error| StoreError(Box::new(error)))?;
        Ok(sender)
    }

    /// Opens the engine over the store.
    pub(crate) fn open(self) -> Result<ActiveApplier, ApplyError> {
        let reader = self.store.reader();
        let engine = Engine::open(reader.as_ref(), rows::engine_version(reader.as_ref())?)?;
        let progress = rows::progress(reader.as_ref())?;
        let outlets = &self.outlets;
        outlets
            .membership
            .send_replace(Arc::new(rows::stored_membership(reader.as_ref())?));
        outlets
            .purge_floor
            .send_replace(rows::purge_floor(reader.as_ref())?);
        outlets
            .engine_version
            .send_replace(rows::engine_version(reader.as_ref())?);
        outlets.state_durable.send_replace(progress.index());
        outlets.progress.send_replace(progress);
        self.clock.observe(progress.now_ms);
        Ok(ActiveApplier {
            applier: self,
            engine,
            reader,
            progress,
            failure: None,
        })
    }
}

/// An applier with what it has open; on a thread of its own or as a task.
pub(crate) struct ActiveApplier {
    applier: Applier,
    engine: Engine,
    reader: Arc<dyn SharedReader>,
    progress: Progress,
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
                let counters = &self.applier.outlets.counters;
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
        if let Some(applied) = self.progress.index()
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
        self.progress = Progress {
            log_id: Some(log_id),
            digest: digest::chain(self.progress.digest, index, &applied.writes),
            now_ms: applied.now_ms.unwrap_or(self.progress.now_ms),
        };
        rows::put_progress(&mut applied.writes, &self.progress);
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
        let counters = &self.applier.outlets.counters;
        counters
            .commands
            .fetch_add(entry.commands.len() as u64, Ordering::Relaxed);
        let observer = &self.applier.observer;
        observer.commands_applied(&entry, &applied.replies);
        self.applier.clock.observe(applied.now_ms);
        Ok(Applied {
            writes: applied.writes,
            outcome: Outcome {
                replies: applied.replies,
            },
            effects: applied.effects,
            offers: entry
                .offers
                .iter()
                .map(|offer| (offer.poll, offer.slots))
                .collect(),
            proposer: entry.stamp.node,
            now_ms: Some(applied.now_ms),
            after: Vec::new(),
        })
    }

    /// Keeps who the members are now, and who is one no longer.
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
                self.compare_digests(&mut applied, index, (node, digest))?;
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

    /// Refuses what this binary would decide differently from the others.
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
        (node, digest): (u64, u128),
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
                // What was reported of a state that was replaced proves nothing about this one. It may
                // still be among the reports that came with it, or on its way.
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
        let outlets = &self.applier.outlets;
        outlets.counters.entries.fetch_add(1, Ordering::Relaxed);
        // Before the progress: whoever waited for this entry must not go on with a state that it has
        // proven wrong.
        for after in applied.after {
            self.tell(after);
        }
        outlets.progress.send_replace(self.progress);
        if let Some(responder) = responder {
            responder.send(applied.outcome);
        }
        if log_id.index().is_multiple_of(self.applier.digest_interval) {
            outlets.checkpoints.send_replace(self.progress);
        }
        if !applied.effects.is_empty() || !applied.offers.is_empty() {
            outlets.feed.publish(Notice::Applied(Arc::new(AppliedBatch {
                index: log_id.index(),
                term: membership::term_of(&log_id),
                node: applied.proposer,
                now_ms: self.progress.now_ms,
                offers: applied.offers,
                effects: applied.effects,
            })));
        }
    }

    fn tell(&self, after: After) {
        let outlets = &self.applier.outlets;
        match after {
            After::Membership(stored) => drop(outlets.membership.send_replace(Arc::new(stored))),
            After::PurgeFloor(index) => drop(outlets.purge_floor.send_replace(index)),
            After::EngineVersion(version) => {
                tracing::info!(version, "all members know this engine version, and use it");
                outlets.engine_version.send_replace(version);
            }
            After::Split(index) => drop(outlets.split.send_replace(Some(index))),
            After::Divergence(divergence) => {
                outlets.divergence.send_replace(Some(divergence));
            }
        }
    }

    /// Puts a snapshot in place of the state, durably, and keeps it as the own one.
    fn install(
        &mut self,
        expected: Option<LogId>,
        snapshot: SnapshotData,
    ) -> Result<(), ApplyError> {
        let store = &self.applier.store;
        let mut incoming = snapshot.into_incoming(store.as_ref())?;
        let found = rows::progress(incoming.reader())?.log_id;
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
        self.progress = rows::progress(self.reader.as_ref())?;
        let outlets = &self.applier.outlets;
        outlets
            .membership
            .send_replace(Arc::new(rows::stored_membership(self.reader.as_ref())?));
        outlets
            .purge_floor
            .send_replace(rows::purge_floor(self.reader.as_ref())?);
        outlets
            .engine_version
            .send_replace(rows::engine_version(self.reader.as_ref())?);
        outlets.state_durable.send_replace(self.progress.index());
        outlets.progress.send_replace(self.progress);
        outlets.feed.publish(Notice::Lost);
        let installed = &outlets.counters.snapshots_installed;
        installed.fetch_add(1, Ordering::Relaxed);
        self.applier.clock.observe(self.progress.now_ms);
        Ok(())
    }

    /// What stays of this node's own rows when the state after the entry `taken` takes the place of this
    /// one.
    fn local_rows(&self, taken: Option<LogId>) -> Result<Writes, ApplyError> {
        let reader = self.reader.as_ref();
        let mut writes = Writes::new();
        if let Some(identity) = rows::identity(reader)? {
            rows::put_identity(&mut writes, &identity);
        }
        let taken = taken.map_or(0, |log_id| log_id.index());
        let reported = self.progress.index().unwrap_or(0).max(taken);
        rows::put_reports_void(&mut writes, reported.max(rows::reports_void(reader)?));
        Ok(writes)
    }
}
