//! The transfer of a snapshot from one member to another.

use crate::execution::{BlockingPool, JobKind};
use crate::log::vote::Vote;
use crate::membership;
use crate::network::calls::{PeerError, Requests};
use crate::network::convert;
use crate::network::protocol::{
    Sender, SnapshotBegin, SnapshotEnd, SnapshotPart, SnapshotRows, snapshot_part,
};
use crate::raft::type_config::TypeConfig;
use crate::state::snapshot::{Packer, Part, PartError, Snapshot, SnapshotData, Unpacker};
use crate::state::store::StateStore;
use flotilla_engine::store::StoreError;
use futures::stream::{self, StreamExt};
use openraft::type_config::alias::SnapshotMetaOf;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;

/// Parts packed ahead of the network, each about a megabyte.
const PARTS_AHEAD: usize = 4;
/// Snapshots that a node reads at the same time, to send them to members or as backups. A member waits for its turn until
/// the leader's attempt times out; if it asks for one itself, it is refused, and asks another member.
pub(crate) const SNAPSHOTS_READ_MAX: usize = 4;
/// What a snapshot takes in memory while it is sent or received: the parts ahead, one that is packed or unpacked, and one in
/// the transport. In bytes.
pub(crate) const SNAPSHOT_BYTES: usize = 8 << 20;
/// All snapshots that a node sends and receives. In bytes.
pub const SNAPSHOTS_BYTES_MAX: usize = (SNAPSHOTS_READ_MAX + 1) * SNAPSHOT_BYTES;
/// How long a receiver may go without taking a part.
const STALL_MAX: Duration = Duration::from_secs(30);

type SnapshotMeta = SnapshotMetaOf<TypeConfig>;

/// A snapshot to be sent, and the permit to read it.
pub(crate) struct Outgoing {
    pub(crate) snapshot: Snapshot,
    /// One of [`SNAPSHOTS_READ_MAX`].
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Streams the parts of a snapshot, packed while they are sent.
pub(crate) fn send(
    sender: Sender,
    vote: &Vote,
    outgoing: Outgoing,
    blocking_pool: BlockingPool,
) -> Requests<SnapshotPart> {
    let (parts, receiver) = mpsc::channel(PARTS_AHEAD);
    let Outgoing { snapshot, permit } = outgoing;
    let begin = snapshot_part::Part::Begin(SnapshotBegin {
        sender: Some(sender),
        vote: Some(convert::vote_out(vote)),
        last_log_id: snapshot.meta.last_log_id.as_ref().map(convert::log_id_out),
        membership: membership::encode_stored(&snapshot.meta.last_membership).into(),
    });
    tokio::spawn(async move {
        let _permit = permit;
        let SnapshotData::Captured(rows) = snapshot.snapshot else {
            // openraft sends what `get_current_snapshot` returned, which is a capture; a stream
            // without an end is refused in any case.
            return;
        };
        let mut packer = Packer::new(rows);
        let mut next = Some(begin);
        while let Some(part) = next {
            let part = SnapshotPart { part: Some(part) };
            if parts.send_timeout(part, STALL_MAX).await.is_err() {
                return;
            }
            let packed = blocking_pool.run(JobKind::SnapshotPart, move || (packer.pack(), packer));
            let Ok((Ok(part), rest)) = packed.await.inspect(|(packed, _)| tell(packed)) else {
                return;
            };
            next = part.map(part_out);
            packer = rest;
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

fn tell(packed: &Result<Option<Part>, PartError>) {
    if let Err(error) = packed {
        tracing::error!(%error, "a snapshot cannot be read");
    }
}

/// A received snapshot, complete.
pub(crate) struct ReceivedSnapshot {
    pub(crate) vote: Vote,
    pub(crate) snapshot: Snapshot,
}

/// Why a snapshot was not received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// The peer or the connection failed.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// It cannot be stored here: another peer's would fail as well.
    #[error("the snapshot cannot be stored: {0}")]
    Store(#[from] StoreError),
}

impl From<PartError> for ReceiveError {
    fn from(error: PartError) -> Self {
        match error {
            PartError::Store(error) => Self::Store(error),
            PartError::Checksum { .. } | PartError::Unpack(_) | PartError::Incomplete { .. } => {
                PeerError::Refused(error.to_string()).into()
            }
        }
    }
}

impl From<ReceiveError> for PeerError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Peer(error) => error,
            ReceiveError::Store(_) => Self::Failed(error.to_string()),
        }
    }
}

/// The parts of a snapshot, until the next one takes longer than `silence_max`: its sender may be gone without a sign.
pub(crate) fn until_silent(
    parts: Requests<SnapshotPart>,
    silence_max: Duration,
) -> Requests<SnapshotPart> {
    let parts = stream::unfold(parts, move |mut parts| async move {
        match tokio::time::timeout(silence_max, parts.next()).await {
            Ok(part) => Some((part?, parts)),
            Err(_) => {
                tracing::warn!("the sender of a snapshot has fallen silent");
                None
            }
        }
    });
    Box::pin(parts)
}

/// Receives the begin of a snapshot.
pub(crate) async fn receive_begin(
    parts: &mut Requests<SnapshotPart>,
) -> Result<SnapshotBegin, PeerError> {
    match parts.next().await.and_then(|part| part.part) {
        Some(snapshot_part::Part::Begin(begin)) => Ok(begin),
        _ => Err(PeerError::Refused(
            "expected the begin of a snapshot".to_owned(),
        )),
    }
}

/// Receives the rest of a snapshot into a new place of the store.
pub(crate) async fn receive_rows(
    begin: SnapshotBegin,
    mut parts: Requests<SnapshotPart>,
    store: &dyn StateStore,
    blocking_pool: &BlockingPool,
) -> Result<ReceivedSnapshot, ReceiveError> {
    let last_membership = convert::membership_in(&begin.membership);
    let meta = SnapshotMeta {
        last_log_id: begin.last_log_id.map(convert::log_id_in),
        last_membership: last_membership.map_err(PeerError::from)?,
    };
    let vote = convert::vote_in(begin.vote).map_err(PeerError::from)?;
    let mut unpacking = (Unpacker::default(), store.receive()?);
    while let Some(part) = parts.next().await {
        match part.part {
            Some(snapshot_part::Part::Rows(rows)) => {
                let written = blocking_pool.run(JobKind::SnapshotPart, move || {
                    let (mut unpacker, mut incoming) = unpacking;
                    let writes = unpacker.rows(rows.checksum, &rows.compressed)?;
                    incoming.write(&writes)?;
                    Ok::<_, PartError>((unpacker, incoming))
                });
                unpacking = written
                    .await
                    .map_err(|error| PeerError::Failed(error.to_string()))??;
            }
            Some(snapshot_part::Part::End(end)) => {
                let digest = convert::digest_in(&end.digest).map_err(PeerError::from)?;
                let (unpacker, incoming) = unpacking;
                unpacker.end(end.row_count, digest)?;
                let snapshot = SnapshotData::Received(incoming);
                return Ok(ReceivedSnapshot {
                    vote,
                    snapshot: Snapshot { meta, snapshot },
                });
            }
            Some(snapshot_part::Part::Begin(_)) | None => break,
        }
    }
    let broke_off = "the snapshot ended early".to_owned();
    Err(PeerError::Refused(broke_off).into())
}

fn part_out(part: Part) -> snapshot_part::Part {
    match part {
        Part::Rows {
            checksum,
            compressed,
        } => snapshot_part::Part::Rows(SnapshotRows {
            checksum,
            compressed,
        }),
        Part::End { row_count, digest } => snapshot_part::Part::End(SnapshotEnd {
            row_count,
            digest: convert::digest_out(digest),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{Execution, Pace};
    use flotilla_engine::store::MemoryStore;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    struct NoDelay;

    impl Pace for NoDelay {
        fn duration(&self, _job_kind: JobKind) -> Duration {
            Duration::ZERO
        }
    }

    #[tokio::test(start_paused = true)]
    async fn parts_end_when_their_sender_falls_silent() {
        let part = || SnapshotPart { part: None };
        let sent = stream::iter([part(), part()]).chain(stream::pending());
        let received = until_silent(sent.boxed(), Duration::from_secs(30));
        assert_eq!(received.count().await, 2);
    }

    /// Rows for more parts than are packed ahead.
    fn snapshot() -> Snapshot {
        let mut rows = MemoryStore::default();
        let row = |number: u16| (number.to_be_bytes().to_vec(), Some(vec![7; 8_000]));
        rows.write(&(0..1_000).map(row).collect());
        Snapshot {
            meta: SnapshotMeta::default(),
            snapshot: SnapshotData::Captured(Arc::new(rows)),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_counts_as_being_read_until_it_is_sent_or_its_receiver_stalls() {
        let permits = Arc::new(Semaphore::new(2));
        let pace = Arc::new(NoDelay);
        let pool = BlockingPool::from(Execution::CallersRuntime(pace));
        let send = || {
            let outgoing = Outgoing {
                snapshot: snapshot(),
                permit: Arc::clone(&permits).try_acquire_owned().unwrap(),
            };
            super::send(Sender::default(), &Vote::new(1, 1), outgoing, pool.clone())
        };
        let (taken, mut stalled) = (send(), send());
        assert_eq!(permits.available_permits(), 0);
        assert!(taken.count().await > PARTS_AHEAD + 2);
        assert_eq!(permits.available_permits(), 1);
        assert!(stalled.next().await.is_some());
        let both = permits.acquire_many(2);
        let both = tokio::time::timeout(2 * STALL_MAX, both).await;
        drop(both.expect("in time"));
        // Its end is missing, so it is refused.
        assert!(stalled.count().await <= PARTS_AHEAD + 1);
    }
}
