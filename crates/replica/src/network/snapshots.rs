//! A snapshot on its way from leader to follower.

use crate::log::vote::Vote;
use crate::membership;
use crate::network::calls::{PeerError, Requests};
use crate::network::convert;
use crate::network::protocol::{
    Sender, SnapshotBegin, SnapshotEnd, SnapshotPart, SnapshotRows, snapshot_part,
};
use crate::raft::type_config::TypeConfig;
use crate::state::snapshot::{Part, PartError, SnapshotData, Unpacker, pack};
use crate::state::store::StateStore;
use futures::StreamExt;
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Parts packed ahead of the network, each about a megabyte.
const PARTS_AHEAD: usize = 4;

type Snapshot = SnapshotOf<TypeConfig, SnapshotData>;
type SnapshotMeta = SnapshotMetaOf<TypeConfig>;

/// The parts of a snapshot, packed while they are sent.
pub(crate) fn send(sender: Sender, vote: &Vote, snapshot: Snapshot) -> Requests<SnapshotPart> {
    let (parts, receiver) = mpsc::channel(PARTS_AHEAD);
    let begin = snapshot_part::Part::Begin(SnapshotBegin {
        sender: Some(sender),
        vote: Some(convert::vote_out(vote)),
        last_log_id: snapshot.meta.last_log_id.as_ref().map(convert::log_id_out),
        membership: membership::encode_stored(&snapshot.meta.last_membership).into(),
    });
    tokio::task::spawn_blocking(move || {
        let SnapshotData::Captured(rows) = snapshot.snapshot else {
            // openraft sends what `get_current_snapshot` gave, which is a capture; a stream without
            // an end is refused in any case.
            return;
        };
        if parts
            .blocking_send(SnapshotPart { part: Some(begin) })
            .is_err()
        {
            return;
        }
        let sent = pack(rows.as_ref(), &mut |part| {
            let part = SnapshotPart {
                part: Some(part_out(part)),
            };
            parts.blocking_send(part).is_ok()
        });
        if let Err(error) = sent {
            tracing::error!(%error, "a snapshot cannot be read");
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// What a complete stream of parts held.
pub(crate) struct Received {
    pub(crate) vote: Vote,
    pub(crate) snapshot: Snapshot,
}

/// Takes the begin of a snapshot.
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

/// Takes the rest of a snapshot into a new place of the store.
pub(crate) async fn receive_rows(
    begin: SnapshotBegin,
    mut parts: Requests<SnapshotPart>,
    store: &Arc<dyn StateStore>,
) -> Result<Received, PeerError> {
    let meta = SnapshotMeta {
        last_log_id: begin.last_log_id.map(convert::log_id_in),
        last_membership: convert::membership_in(&begin.membership)?,
    };
    let vote = convert::vote_in(begin.vote)?;
    let incoming = store
        .receive()
        .map_err(|error| PeerError::Failed(error.to_string()))?;
    let mut unpacker = Unpacker::new(incoming);
    while let Some(part) = parts.next().await {
        match part.part {
            Some(snapshot_part::Part::Rows(rows)) => {
                let written = tokio::task::spawn_blocking(move || {
                    unpacker
                        .rows(rows.checksum, &rows.compressed)
                        .map(|()| unpacker)
                });
                unpacker = written
                    .await
                    .map_err(|error| PeerError::Failed(error.to_string()))?
                    .map_err(refused)?;
            }
            Some(snapshot_part::Part::End(end)) => {
                let digest = convert::digest_in(&end.digest)?;
                let snapshot = unpacker.end(end.rows_count, digest).map_err(refused)?;
                return Ok(Received {
                    vote,
                    snapshot: Snapshot { meta, snapshot },
                });
            }
            Some(snapshot_part::Part::Begin(_)) | None => break,
        }
    }
    Err(PeerError::Refused(
        "the snapshot broke off before its end".to_owned(),
    ))
}

fn refused(error: PartError) -> PeerError {
    PeerError::Refused(error.to_string())
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
        Part::End { rows_count, digest } => snapshot_part::Part::End(SnapshotEnd {
            rows_count,
            digest: convert::digest_out(digest),
        }),
    }
}
