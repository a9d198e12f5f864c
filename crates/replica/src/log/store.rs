//! The log store: the Raft log behind openraft's storage trait.

use crate::environment::Observer;
use crate::execution::{BlockingPool, JobKind};
use crate::log::device::{DeviceError, Fact, LogDevice, Operation};
use crate::log::progress::Progress;
use crate::log::record::{self, LogEntry, RecordError};
use crate::log::vote::{self, Vote};
use crate::log::window::{EntryLocation, Window};
use crate::log::writer::{Job, Waiter, Writer, WriterCounters};
use crate::raft::type_config::{LogId, TypeConfig};
use crate::storage::StoreFigures;
use flotilla_engine::codec::DecodeError;
use futures::Stream;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{mpsc, oneshot, watch};

/// Decoded entries kept in memory in addition to those not yet written.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// The maximum size of one read for replication or apply, unless one entry alone is larger.
const READ_BYTES_MAX: usize = 4 << 20;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogOpenError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A record was changed after it was written.
    #[error("the log record at index {index} is corrupt: {error}")]
    Record {
        /// The record's index.
        index: u64,
        /// What is wrong.
        error: RecordError,
    },
    /// A record is missing.
    #[error("the log has a hole: expected index {expected}, but found {found}")]
    Hole {
        /// The expected index.
        expected: u64,
        /// The index that was found.
        found: u64,
    },
    /// The vote or another fact cannot be read.
    #[error("the log's {fact:?} record is corrupt: {error}")]
    Fact {
        /// The unreadable fact.
        fact: Fact,
        /// What is wrong.
        error: DecodeError,
    },
    /// The writer's thread cannot be created.
    #[error("the log writer cannot start: {0}")]
    Thread(io::Error),
}

/// What a node's log works with.
pub(crate) struct LogParts {
    pub(crate) node_id: u64,
    pub(crate) device: Arc<dyn LogDevice>,
    pub(crate) observer: Arc<dyn Observer>,
    /// The last index that the state store would still have after a power cut: no purge passes it.
    pub(crate) state_durable: watch::Receiver<Option<u64>>,
}

/// The log behind openraft's storage trait; clones share it.
#[derive(Clone)]
pub(crate) struct LogStore {
    device: Arc<dyn LogDevice>,
    window: Arc<RwLock<Window>>,
    jobs: mpsc::Sender<Job>,
    counters: Arc<WriterCounters>,
    progress: Arc<Progress>,
    blocking_pool: BlockingPool,
    /// The last index whose effects survive a crash without the log.
    state_durable: watch::Receiver<Option<u64>>,
}

impl LogStore {
    /// Opens the log, verifies every record and starts its writer.
    ///
    /// # Errors
    /// [`LogOpenError`] for an unusable device or record.
    pub(crate) fn open(
        parts: LogParts,
        blocking_pool: &BlockingPool,
    ) -> Result<Self, LogOpenError> {
        let LogParts {
            node_id,
            device,
            observer,
            state_durable,
        } = parts;
        let window = Arc::new(RwLock::new(load(device.as_ref())?));
        let counters = Arc::new(WriterCounters::default());
        let progress = Arc::new(Progress::default());
        let writer = Writer {
            device: Arc::clone(&device),
            window: Arc::clone(&window),
            counters: Arc::clone(&counters),
            progress: Arc::clone(&progress),
            observer,
        };
        let jobs = writer
            .spawn(node_id, blocking_pool)
            .map_err(LogOpenError::Thread)?;
        Ok(Self {
            device,
            window,
            jobs,
            counters,
            progress,
            blocking_pool: blocking_pool.clone(),
            state_durable,
        })
    }

    /// How much was written since the start.
    pub(crate) fn counters(&self) -> &WriterCounters {
        &self.counters
    }

    /// The progress of its writes.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The approximate size of the log after `index`.
    pub(crate) fn bytes_after(&self, index: u64) -> u64 {
        self.read_window(|window| window.meter.bytes_after(index))
    }

    /// The approximate size of the whole log.
    pub(crate) fn bytes(&self) -> u64 {
        self.read_window(|window| window.meter.bytes())
    }

    /// The device's figures.
    pub(crate) fn figures(&self) -> Option<StoreFigures> {
        self.device.figures()
    }

    /// Whether there was never a vote or a write.
    pub(crate) fn is_pristine(&self) -> bool {
        self.read_window(|window| window.vote.is_none() && window.last.is_none())
    }

    /// The last purged log id.
    pub(crate) fn purged(&self) -> Option<LogId> {
        self.read_window(|window| window.purged)
    }

    /// The last log id, purged or not.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.read_window(|window| window.last)
    }

    /// The last entry of which the log knows that it was committed.
    pub(crate) fn committed(&self) -> Option<LogId> {
        self.read_window(|window| window.committed)
    }

    /// Whether the log lacks entries up to `acknowledged`, which this node has acknowledged to the leader with this vote.
    /// Only a newer leader may have removed them, to which this node has then given its vote before.
    pub(crate) fn has_lost(&self, vote: &Vote, acknowledged: LogId) -> bool {
        self.read_window(|window| {
            let is_newest = window.vote.is_none_or(|own| own <= *vote);
            let last = window.last.map(|last| last.index());
            is_newest && last < Some(acknowledged.index())
        })
    }

    /// The last entry that this node had acknowledged, if its disk is known to have lost some.
    pub(crate) fn lost(&self) -> Option<LogId> {
        self.read_window(|window| window.lost)
    }

    /// Records that the disk has lost entries up to `acknowledged`.
    ///
    /// # Errors
    /// [`io::Error`] if the device fails.
    pub(crate) async fn mark_lost(&self, acknowledged: LogId) -> io::Result<()> {
        let bytes = vote::encode_log_id(&acknowledged);
        let fact = Fact::Lost;
        self.write_durably(vec![Operation::Set { fact, bytes }])
            .await
    }

    /// Makes the log begin after the last entry that the state has applied, unless the log has that
    /// entry. What the log holds then is in the state, or was never committed: openraft deletes it
    /// after it has installed a snapshot, and does not start if a crash came in between.
    ///
    /// # Errors
    /// [`io::Error`] if the device fails; then nothing or everything was done.
    pub(crate) async fn fit(&self, applied: LogId) -> io::Result<()> {
        let index = applied.index();
        let purged = self.purged();
        if purged.is_some_and(|purged| purged.index() >= index) {
            return Ok(());
        }
        let found = self.read(index, index + 1, usize::MAX).await?;
        if found.first().is_some_and(|entry| entry.log_id == applied) {
            return Ok(());
        }
        let last = self.last();
        tracing::info!(
            ?last,
            ?applied,
            "the log does not have the last applied entry: it was reset to begin after the applied index"
        );
        self.write_window(|window| {
            window.truncate_after(purged);
            window.purge(applied);
        });
        let from = purged.map_or(0, |purged| purged.index() + 1);
        let bytes = vote::encode_log_id(&applied);
        self.write_durably(vec![
            Operation::Truncate { from },
            Operation::Purge { to: index },
            Operation::Set {
                fact: Fact::Purged,
                bytes,
            },
        ])
        .await
    }

    fn read_window<T>(&self, read: impl FnOnce(&Window) -> T) -> T {
        read(&self.window.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write_window<T>(&self, write: impl FnOnce(&mut Window) -> T) -> T {
        write(&mut self.window.write().unwrap_or_else(PoisonError::into_inner))
    }

    async fn enqueue(&self, operations: Vec<Operation>, waiter: Waiter) -> io::Result<()> {
        let permit = self.jobs.reserve().await.map_err(|_| writer_gone())?;
        self.progress.begin();
        permit.send(Job { operations, waiter });
        Ok(())
    }

    async fn write_durably(&self, operations: Vec<Operation>) -> io::Result<()> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(operations, Waiter::Call(sender)).await?;
        receiver.await.map_err(|_| writer_gone())?
    }

    /// Reads a range, at most `bytes_max` of it but at least one entry if there is any.
    async fn read(&self, from: u64, to: u64, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
        let EntryLocation {
            device: range,
            mut recent,
        } = self.read_window(|window| window.locate(from, to, bytes_max));
        if range.is_empty() {
            return Ok(recent);
        }
        let device = Arc::clone(&self.device);
        let end = range.end;
        let mut entries = self
            .blocking_pool
            .run(JobKind::LogRead, move || {
                read_device(device.as_ref(), range, bytes_max)
            })
            .await??;
        // Entries may be missing only at the beginning: purged, or before the first one.
        let is_complete = entries
            .last()
            .is_none_or(|last| last.log_id.index() + 1 == end);
        if is_complete && (entries.is_empty() || bytes_max == usize::MAX) {
            entries.append(&mut recent);
        } else if bytes_max == usize::MAX {
            return Err(io::Error::other(format!(
                "the log has a hole before index {end}"
            )));
        }
        Ok(entries)
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = Result<LogEntry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (from, to) = limits(&range);
        let pieces = EntryStream {
            store: self.clone(),
            piece: Vec::new().into_iter(),
            from,
            to,
        };
        Box::pin(futures::stream::unfold(pieces, |mut pieces| async {
            let next = pieces.next().await.transpose()?;
            Some((next, pieces))
        }))
    }

    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<LogEntry>, io::Error> {
        let (from, to) = limits(&range);
        self.read(from, to, usize::MAX).await
    }

    async fn limited_get_log_entries(&mut self, from: u64, to: u64) -> io::Result<Vec<LogEntry>> {
        let entries = self.read(from, to, READ_BYTES_MAX).await?;
        // A purge may have removed the first ones meanwhile. An append must have no gap; of nothing, openraft makes a
        // heartbeat, and then sends a snapshot.
        let is_gapless = entries
            .first()
            .is_none_or(|first| first.log_id.index() == from);
        Ok(if is_gapless { entries } else { Vec::new() })
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.read_window(|window| window.vote))
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        Ok(self.read_window(|window| LogState {
            last_purged_log_id: window.purged,
            last_log_id: window.last,
        }))
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let bytes = vote::encode_vote(vote);
        self.write_durably(vec![Operation::Set {
            fact: Fact::Vote,
            bytes,
        }])
        .await?;
        self.write_window(|window| window.vote = Some(*vote));
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let Some(committed) = committed else {
            return Ok(());
        };
        self.write_window(|window| window.committed = Some(committed));
        let bytes = vote::encode_log_id(&committed);
        self.enqueue(
            vec![Operation::Set {
                fact: Fact::Committed,
                bytes,
            }],
            Waiter::Nobody,
        )
        .await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.read_window(|window| window.committed))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = LogEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let appended: Vec<_> = entries
            .into_iter()
            .map(|entry| (record::encode(&entry), entry))
            .collect();
        let operations = self.write_window(|window| {
            appended
                .into_iter()
                .map(|(record, entry)| {
                    let index = entry.log_id.index();
                    window.append(entry, record.len());
                    Operation::Put { index, record }
                })
                .collect()
        });
        self.enqueue(operations, Waiter::Flushed(callback)).await
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        self.write_window(|window| window.truncate_after(last_log_id));
        let from = last_log_id.map_or(0, |log_id| log_id.index() + 1);
        self.write_durably(vec![Operation::Truncate { from }]).await
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        // openraft may order the purge while earlier entries still wait to be applied, and panics
        // when they are missing (its issue 2116). So a purge waits until the state no longer needs
        // what it deletes, not even after a power cut.
        let needed = Some(log_id.index());
        let mut state_durable = self.state_durable.clone();
        state_durable
            .wait_for(|durable| *durable >= needed)
            .await
            .map_err(|_| io::Error::other("the state store is closed"))?;
        self.write_window(|window| window.purge(log_id));
        let bytes = vote::encode_log_id(&log_id);
        self.write_durably(vec![
            Operation::Purge { to: log_id.index() },
            Operation::Set {
                fact: Fact::Purged,
                bytes,
            },
        ])
        .await
    }
}

/// A range that is being applied, read piecemeal: after a long absence it may be far larger than
/// memory.
struct EntryStream {
    store: LogStore,
    piece: std::vec::IntoIter<LogEntry>,
    from: u64,
    to: u64,
}

impl EntryStream {
    /// The next entry, if the log has it.
    async fn next(&mut self) -> io::Result<Option<LogEntry>> {
        if self.piece.as_slice().is_empty() {
            let (from, to) = (self.from, self.to);
            self.piece = self.store.read(from, to, READ_BYTES_MAX).await?.into_iter();
        }
        let Some(entry) = self.piece.next() else {
            return Ok(None);
        };
        self.from = entry.log_id.index() + 1;
        Ok(Some(entry))
    }
}

/// Reads the facts and verifies every record; the last ones stay in memory.
fn load(device: &dyn LogDevice) -> Result<Window, LogOpenError> {
    let facts = device.facts()?;
    let log_id = |fact| {
        let decode = |bytes: &Vec<u8>| vote::decode_log_id(bytes);
        facts
            .get(&fact)
            .map(decode)
            .transpose()
            .map_err(|error| LogOpenError::Fact { fact, error })
    };
    let mut window = Window::new(WINDOW_BYTES_MAX);
    window.purged = log_id(Fact::Purged)?;
    window.last = window.purged;
    window.committed = log_id(Fact::Committed)?;
    window.lost = log_id(Fact::Lost)?;
    window.vote = facts
        .get(&Fact::Vote)
        .map(|bytes| vote::decode_vote(bytes))
        .transpose()
        .map_err(|error| LogOpenError::Fact {
            fact: Fact::Vote,
            error,
        })?;
    let mut failure = None;
    let start = window.purged.map_or(0, |purged| purged.index() + 1);
    device.read(start, u64::MAX, &mut |index, bytes| {
        failure = load_record(&mut window, index, bytes).err();
        failure.is_none()
    })?;
    failure.map_or(Ok(window), Err)
}

fn load_record(window: &mut Window, index: u64, bytes: bytes::Bytes) -> Result<(), LogOpenError> {
    let size = bytes.len();
    let entry = record::decode(bytes).map_err(|error| LogOpenError::Record { index, error })?;
    let found = entry.log_id.index();
    let expected = window.last.map_or(found, |last| last.index() + 1);
    if found != expected || found != index {
        return Err(LogOpenError::Hole {
            expected,
            found: index,
        });
    }
    window.append(entry, size);
    window.evict(index);
    Ok(())
}

fn read_device(
    device: &dyn LogDevice,
    range: std::ops::Range<u64>,
    bytes_max: usize,
) -> io::Result<Vec<LogEntry>> {
    let mut entries = Vec::new();
    let mut bytes_read = 0;
    let mut failure = None;
    device
        .read(range.start, range.end, &mut |index, bytes| {
            bytes_read += bytes.len();
            if bytes_read > bytes_max && !entries.is_empty() {
                return false;
            }
            match record::decode(bytes) {
                Ok(entry) => entries.push(entry),
                Err(error) => failure = Some(LogOpenError::Record { index, error }),
            }
            failure.is_none()
        })
        .map_err(io::Error::other)?;
    failure.map_or(Ok(entries), |error| {
        Err(io::Error::new(io::ErrorKind::InvalidData, error))
    })
}

fn limits(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(from) => *from,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(to) => *to,
        Bound::Unbounded => u64::MAX,
    };
    (from, to)
}

fn writer_gone() -> io::Error {
    io::Error::other("the log writer has ended")
}
