//! What a backup is of, and how it ends.

use crate::membership::{cluster_id, term_of};
use crate::raft::type_config::LogId;
use crate::state::rows::{self, RowError};
use flotilla_engine::codec;
use flotilla_engine::store::Reader;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a backup comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupOrigin {
    /// A node that served: all entries in it were agreed upon.
    Serving,
    /// The data directory of a node that did not run: the whole of its log is in it, also what may
    /// never have been agreed upon.
    Directory,
}

/// What a backup is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHeader {
    /// The cluster that was backed up.
    pub cluster_id: String,
    /// The node that gave the backup.
    pub node_id: u64,
    /// The term of the last entry in it.
    pub term: u64,
    /// The index of that entry.
    pub index: u64,
    /// The digest of the state after it (design rule 11).
    pub digest: u128,
    /// The cluster's own time after it. In milliseconds.
    pub now_ms: u64,
    /// The wall clock's time when the backup was taken. In milliseconds.
    pub taken_at_ms: u64,
    /// Where it comes from.
    pub origin: BackupOrigin,
    /// The version of the program that gave it.
    pub version: String,
}

/// Who gives a backup.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) node_id: u64,
    pub(crate) origin: BackupOrigin,
    pub(crate) version: String,
}

/// What the last block says. Both digests are those of xxh3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) rows_count: u64,
    /// Of the rows, uncompressed.
    pub(super) rows_digest: u128,
    /// Of every byte before this block.
    pub(super) digest: u128,
}

#[derive(Serialize, Deserialize)]
enum VersionedHeader {
    V1(BackupHeader),
}

#[derive(Serialize, Deserialize)]
enum VersionedEnd {
    V1(End),
}

impl BackupHeader {
    /// What the rows say about themselves; `None` before there is a cluster.
    pub(crate) fn of(rows: &dyn Reader, source: Source) -> Result<Option<Self>, RowError> {
        let progress = rows::progress(rows)?;
        let members = rows::stored_membership(rows)?;
        let cluster_id = cluster_id(members.membership());
        let (Some(log_id), Some(cluster_id)) = (progress.log_id, cluster_id) else {
            return Ok(None);
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let taken_at_ms = since_epoch.map_or(0, |time| time.as_millis());
        Ok(Some(Self {
            cluster_id,
            node_id: source.node_id,
            term: term_of(&log_id),
            index: log_id.index(),
            digest: progress.digest,
            now_ms: progress.now_ms,
            taken_at_ms: u64::try_from(taken_at_ms).unwrap_or(u64::MAX),
            origin: source.origin,
            version: source.version,
        }))
    }

    /// The last entry in the backup.
    pub(super) fn log_id(&self) -> LogId {
        LogId::new_term_index(self.term, self.index)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        codec::encode(&VersionedHeader::V1(self.clone()))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, codec::DecodeError> {
        let VersionedHeader::V1(header) = codec::decode(bytes)?;
        Ok(header)
    }
}

impl End {
    pub(super) fn encode(self) -> Vec<u8> {
        codec::encode(&VersionedEnd::V1(self))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, codec::DecodeError> {
        let VersionedEnd::V1(end) = codec::decode(bytes)?;
        Ok(end)
    }
}
