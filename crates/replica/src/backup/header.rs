//! The header and the end block of a backup.

use crate::membership::{cluster_id, term_of};
use crate::network::local::HOME_GROUP_ID;
use crate::raft::type_config::LogId;
use crate::state::rows::{self, RowError};
use flotilla_engine::codec;
use flotilla_engine::store::Reader;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a backup comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupOrigin {
    /// A running node: all entries in the backup were committed.
    Serving,
    /// The data directory of a stopped node: it includes the node's whole log, even entries that
    /// may never have been committed.
    Directory,
}

/// What a backup contains and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHeader {
    /// The cluster that was backed up.
    pub cluster_id: String,
    /// The Raft group within the cluster; always 0.
    pub group_id: u64,
    /// The node that made the backup.
    pub node_id: u64,
    /// The term of the last entry in it.
    pub term: u64,
    /// The index of that entry.
    pub index: u64,
    /// The digest of the state after it (design rule 11).
    pub digest: u128,
    /// The cluster's clock after that entry. In milliseconds.
    pub now_ms: u64,
    /// The wall clock when the backup was made. In milliseconds.
    pub taken_at_ms: u64,
    /// Where it comes from.
    pub origin: BackupOrigin,
    /// The version of the binary that made it.
    pub version: String,
}

/// The node that makes a backup.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) node_id: u64,
    pub(crate) origin: BackupOrigin,
    pub(crate) version: String,
}

/// The content of the last block. Both digests are xxh3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) row_count: u64,
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
    /// The header from the rows; `None` before there is a cluster.
    pub(crate) fn of(rows: &dyn Reader, source: Source) -> Result<Option<Self>, RowError> {
        let applied_position = rows::applied_position(rows)?;
        let members = rows::stored_membership(rows)?;
        let cluster_id = cluster_id(members.membership());
        let (Some(log_id), Some(cluster_id)) = (applied_position.log_id, cluster_id) else {
            return Ok(None);
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let taken_at_ms = since_epoch.map_or(0, |time| time.as_millis());
        Ok(Some(Self {
            cluster_id,
            group_id: HOME_GROUP_ID,
            node_id: source.node_id,
            term: term_of(&log_id),
            index: log_id.index(),
            digest: applied_position.digest,
            now_ms: applied_position.now_ms,
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
