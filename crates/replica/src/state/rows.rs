//! The catalogue of the replica's own rows, which are stored beside the engine's tables.
//!
//! The engine's keys begin with a table number from `0x01` to `0xEF`; the replica's begin above.
//! Numbers are appended and never reused.

use crate::membership::{self, StoredMembership};
use crate::raft::type_config::LogId;
use flotilla_engine::ENGINE_VERSION_FIRST;
use flotilla_engine::codec::{self, DecodeError};
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError, Writes};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Written by entries, equal on every replica, part of the digest and of snapshots.
const REPLICATED: u8 = 0xF0;
/// The applied position: part of snapshots, but not of the digest, which it holds.
const PROGRESS: [u8; 2] = [0xF1, 1];
/// This node's own rows: not part of snapshots.
const LOCAL: u8 = 0xF2;

const MEMBERSHIP: [u8; 2] = [REPLICATED, 1];
const PURGE_FLOOR: [u8; 2] = [REPLICATED, 2];
const DIGEST_REPORTS: [u8; 2] = [REPLICATED, 3];
const RETIRED: [u8; 2] = [REPLICATED, 4];
const ENGINE_VERSION: [u8; 2] = [REPLICATED, 5];
const IDENTITY: [u8; 2] = [LOCAL, 1];
const DIVERGENCE: [u8; 2] = [LOCAL, 2];
const REPORTS_VOID: [u8; 2] = [LOCAL, 3];

/// A row that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The row's bytes are invalid.
    #[error("the state's {row} row is corrupt: {error}")]
    Corrupt {
        /// The name of the row.
        row: &'static str,
        /// What is wrong.
        error: String,
    },
}

/// The applied position: the last applied entry, with the digest and the time after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppliedPosition {
    /// The last applied entry; unset before the first.
    pub(crate) log_id: Option<LogId>,
    /// The digest chained up to it (design rule 11).
    pub(crate) digest: u128,
    /// The replicated time after it, in milliseconds.
    pub(crate) now_ms: u64,
}

impl AppliedPosition {
    /// The index of the last applied entry.
    pub(crate) fn index(&self) -> Option<u64> {
        self.log_id.map(|log_id| log_id.index())
    }
}

#[derive(Serialize, Deserialize)]
enum VersionedAppliedPosition {
    V1 {
        log_id: Option<(u64, u64)>,
        digest: u128,
        now_ms: u64,
    },
}

/// The identity of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) node_id: u64,
    /// Drawn when the directory was created.
    pub(crate) incarnation: u64,
}

#[derive(Serialize, Deserialize)]
enum VersionedIdentity {
    V1(Identity),
}

/// A divergence: this replica's state differs from the majority's (design rule 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// The index of the entry.
    pub index: u64,
    /// This replica's digest.
    pub ours: u128,
    /// The digest of the majority.
    pub majority: u128,
}

#[derive(Serialize, Deserialize)]
enum VersionedDivergence {
    V1(Divergence),
}

#[derive(Serialize, Deserialize)]
enum VersionedReports {
    V1(BTreeMap<u64, u128>),
}

#[derive(Serialize, Deserialize)]
enum VersionedReportsVoid {
    V1(u64),
}

#[derive(Serialize, Deserialize)]
enum VersionedRetired {
    V1(BTreeSet<u64>),
}

pub(crate) fn put_applied_position(writes: &mut Writes, applied_position: &AppliedPosition) {
    let log_id = applied_position
        .log_id
        .map(|log_id| (membership::term_of(&log_id), log_id.index()));
    let value = VersionedAppliedPosition::V1 {
        log_id,
        digest: applied_position.digest,
        now_ms: applied_position.now_ms,
    };
    writes.put(&PROGRESS, &codec::encode(&value));
}

pub(crate) fn applied_position(rows: &dyn Reader) -> Result<AppliedPosition, RowError> {
    let Some(bytes) = rows.get(&PROGRESS)? else {
        return Ok(AppliedPosition::default());
    };
    let VersionedAppliedPosition::V1 {
        log_id,
        digest,
        now_ms,
    } = decode("progress", &bytes)?;
    let log_id = log_id.map(|(term, index)| LogId::new_term_index(term, index));
    Ok(AppliedPosition {
        log_id,
        digest,
        now_ms,
    })
}

pub(crate) fn put_membership(writes: &mut Writes, stored: &StoredMembership) {
    writes.put(&MEMBERSHIP, &membership::encode_stored(stored));
}

pub(crate) fn stored_membership(rows: &dyn Reader) -> Result<StoredMembership, RowError> {
    let Some(bytes) = rows.get(&MEMBERSHIP)? else {
        return Ok(StoredMembership::default());
    };
    membership::decode_stored(&bytes).map_err(|error| corrupt("membership", error))
}

/// The ids of members that were removed, which are never used again.
pub(crate) fn retired(rows: &dyn Reader) -> Result<BTreeSet<u64>, RowError> {
    let Some(bytes) = rows.get(&RETIRED)? else {
        return Ok(BTreeSet::new());
    };
    let VersionedRetired::V1(retired) = decode("removed members", &bytes)?;
    Ok(retired)
}

pub(crate) fn put_retired(writes: &mut Writes, retired: &BTreeSet<u64>) {
    let value = VersionedRetired::V1(retired.clone());
    writes.put(&RETIRED, &codec::encode(&value));
}

// The next two rows are bare numbers, as they were from the first release: all releases in a
// cluster must write the same.

/// The engine version on which the cluster has agreed (design rule 12).
pub(crate) fn engine_version(rows: &dyn Reader) -> Result<u32, RowError> {
    let bytes = rows.get(&ENGINE_VERSION)?;
    bytes.map_or(Ok(ENGINE_VERSION_FIRST), |bytes| {
        decode("engine version", &bytes)
    })
}

pub(crate) fn put_engine_version(writes: &mut Writes, version: u32) {
    writes.put(&ENGINE_VERSION, &codec::encode(&version));
}

pub(crate) fn put_purge_floor(writes: &mut Writes, index: u64) {
    writes.put(&PURGE_FLOOR, &codec::encode(&index));
}

pub(crate) fn purge_floor(rows: &dyn Reader) -> Result<u64, RowError> {
    let bytes = rows.get(&PURGE_FLOOR)?;
    bytes.map_or(Ok(0), |bytes| decode("purge floor", &bytes))
}

/// The digests that replicas reported after the entry at `index`.
pub(crate) fn digest_reports(
    rows: &dyn Reader,
    index: u64,
) -> Result<BTreeMap<u64, u128>, RowError> {
    let Some(bytes) = rows.get(&reports_key(index))? else {
        return Ok(BTreeMap::new());
    };
    let VersionedReports::V1(reports) = decode("digest report", &bytes)?;
    Ok(reports)
}

pub(crate) fn put_digest_reports(writes: &mut Writes, index: u64, reports: &BTreeMap<u64, u128>) {
    let value = codec::encode(&VersionedReports::V1(reports.clone()));
    writes.put(&reports_key(index), &value);
}

/// Deletes all digest reports except those of the newest `kept` indexes.
pub(crate) fn trim_digest_reports(
    rows: &dyn Reader,
    writes: &mut Writes,
    kept: usize,
) -> Result<(), RowError> {
    let mut seen = 0;
    rows.scan(
        &KeyRange::prefix(&DIGEST_REPORTS),
        Order::Descending,
        &mut |key, _| {
            seen += 1;
            if seen > kept {
                writes.delete(key);
            }
            ControlFlow::Continue(())
        },
    )?;
    Ok(())
}

pub(crate) fn put_identity(writes: &mut Writes, identity: &Identity) {
    writes.put(&IDENTITY, &encode_identity(identity));
}

pub(crate) fn identity(rows: &dyn Reader) -> Result<Option<Identity>, RowError> {
    rows.get(&IDENTITY)?
        .map(|bytes| decode_identity(&bytes))
        .transpose()
}

/// Encodes an identity, here and in the log.
pub(crate) fn encode_identity(identity: &Identity) -> Vec<u8> {
    codec::encode(&VersionedIdentity::V1(identity.clone()))
}

/// Decodes what [`encode_identity`] wrote.
pub(crate) fn decode_identity(bytes: &[u8]) -> Result<Identity, RowError> {
    let VersionedIdentity::V1(identity) = decode("identity", bytes)?;
    Ok(identity)
}

pub(crate) fn put_divergence(writes: &mut Writes, divergence: &Divergence) {
    let value = VersionedDivergence::V1(divergence.clone());
    writes.put(&DIVERGENCE, &codec::encode(&value));
}

pub(crate) fn divergence(rows: &dyn Reader) -> Result<Option<Divergence>, RowError> {
    let Some(bytes) = rows.get(&DIVERGENCE)? else {
        return Ok(None);
    };
    let VersionedDivergence::V1(divergence) = decode("divergence", &bytes)?;
    Ok(Some(divergence))
}

pub(crate) fn put_reports_void(writes: &mut Writes, index: u64) {
    let value = codec::encode(&VersionedReportsVoid::V1(index));
    writes.put(&REPORTS_VOID, &value);
}

/// The last index at which this replica may have reported the digest of a state that has since been
/// replaced; 0 if none was.
pub(crate) fn reports_void(rows: &dyn Reader) -> Result<u64, RowError> {
    let Some(bytes) = rows.get(&REPORTS_VOID)? else {
        return Ok(0);
    };
    let VersionedReportsVoid::V1(index) = decode("void reports", &bytes)?;
    Ok(index)
}

/// Rewrites the state's rows for another cluster: with these members, no removed ones, and nothing
/// that replicas of the old cluster had reported.
pub(crate) fn put_new_cluster(
    rows: &dyn Reader,
    writes: &mut Writes,
    members: &StoredMembership,
) -> Result<(), RowError> {
    trim_digest_reports(rows, writes, 0)?;
    writes.delete(&RETIRED);
    put_membership(writes, members);
    Ok(())
}

/// Whether a key is the replica's own, not the engine's.
pub(crate) fn is_own(key: &[u8]) -> bool {
    key.first().is_some_and(|first| *first >= REPLICATED)
}

/// The name of an own row that is part of snapshots, if it can be read.
pub(crate) fn check(key: &[u8], value: &[u8]) -> Result<&'static str, RowError> {
    match key {
        key if key == MEMBERSHIP => {
            let read = membership::decode_stored(value);
            read.map_err(|error| corrupt("membership", error))?;
        }
        key if key == PURGE_FLOOR => check_as::<u64>("purge floor", value)?,
        key if key == ENGINE_VERSION => check_as::<u32>("engine version", value)?,
        key if key == RETIRED => check_as::<VersionedRetired>("removed members", value)?,
        key if key == PROGRESS => check_as::<VersionedAppliedPosition>("progress", value)?,
        key if key.starts_with(&DIGEST_REPORTS) => {
            check_as::<VersionedReports>("digest report", value)?;
        }
        unknown => {
            let error = format!("there is no row {unknown:02x?}");
            return Err(corrupt("unknown", error));
        }
    }
    Ok("Replica")
}

fn check_as<T: serde::de::DeserializeOwned>(
    row: &'static str,
    value: &[u8],
) -> Result<(), RowError> {
    decode::<T>(row, value).map(|_| ())
}

/// The rows that a snapshot carries.
pub(crate) fn traveling() -> KeyRange {
    KeyRange {
        from: Vec::new(),
        to: vec![LOCAL],
    }
}

fn reports_key(index: u64) -> Vec<u8> {
    [DIGEST_REPORTS.as_slice(), &index.to_be_bytes()].concat()
}

fn decode<T: serde::de::DeserializeOwned>(row: &'static str, bytes: &[u8]) -> Result<T, RowError> {
    codec::decode(bytes).map_err(|error: DecodeError| corrupt(row, error))
}

fn corrupt(row: &'static str, error: impl ToString) -> RowError {
    RowError::Corrupt {
        row,
        error: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::store::MemoryStore;

    #[test]
    fn every_row_survives_the_round_trip() {
        let mut writes = Writes::new();
        let applied_position = AppliedPosition {
            log_id: Some(LogId::new_term_index(3, 8)),
            digest: u128::MAX - 5,
            now_ms: 1_700_000_000_000,
        };
        let identity = Identity {
            node_id: 2,
            incarnation: 99,
        };
        let divergence = Divergence {
            index: 8,
            ours: 1,
            majority: 2,
        };
        put_applied_position(&mut writes, &applied_position);
        put_purge_floor(&mut writes, 7);
        put_identity(&mut writes, &identity);
        put_divergence(&mut writes, &divergence);
        put_reports_void(&mut writes, 12);
        put_retired(&mut writes, &BTreeSet::from([4, 9]));
        put_engine_version(&mut writes, 3);
        put_membership(&mut writes, &StoredMembership::default());
        let mut store = MemoryStore::default();
        store.write(&writes);
        assert_eq!(super::applied_position(&store).unwrap(), applied_position);
        assert_eq!(purge_floor(&store).unwrap(), 7);
        assert_eq!(retired(&store).unwrap(), BTreeSet::from([4, 9]));
        assert_eq!(engine_version(&store).unwrap(), 3);
        assert_eq!(super::identity(&store).unwrap(), Some(identity));
        assert_eq!(super::divergence(&store).unwrap(), Some(divergence));
        assert_eq!(reports_void(&store).unwrap(), 12);
        assert_eq!(
            stored_membership(&store).unwrap(),
            StoredMembership::default()
        );
    }

    /// Released forms are never edited (design rule 12): a difference here needs a new version.
    #[test]
    fn the_bytes_of_rows_do_not_change() {
        let mut writes = Writes::new();
        let log_id = Some(LogId::new_term_index(3, 8));
        put_applied_position(
            &mut writes,
            &AppliedPosition {
                log_id,
                digest: 5,
                now_ms: 300,
            },
        );
        put_purge_floor(&mut writes, 7);
        put_identity(
            &mut writes,
            &Identity {
                node_id: 2,
                incarnation: 99,
            },
        );
        put_divergence(
            &mut writes,
            &Divergence {
                index: 8,
                ours: 1,
                majority: 2,
            },
        );
        put_digest_reports(&mut writes, 9, &BTreeMap::from([(1, 5)]));
        put_retired(&mut writes, &BTreeSet::from([4, 9]));
        put_engine_version(&mut writes, 2);
        put_reports_void(&mut writes, 12);
        let golden: [(&[u8], &[u8]); 8] = [
            (&[0xF0, 2], &[1, 7]),
            (&[0xF0, 3, 0, 0, 0, 0, 0, 0, 0, 9], &[1, 0, 1, 1, 5]),
            (&[0xF0, 4], &[1, 0, 2, 4, 9]),
            (&[0xF0, 5], &[1, 2]),
            (&[0xF1, 1], &[1, 0, 1, 3, 8, 5, 251, 44, 1]),
            (&[0xF2, 1], &[1, 0, 2, 99]),
            (&[0xF2, 2], &[1, 0, 8, 1, 2]),
            (&[0xF2, 3], &[1, 0, 12]),
        ];
        let golden = golden.map(|(key, value)| (key.to_vec(), Some(value.to_vec())));
        assert_eq!(writes, Writes::from(golden));
    }

    #[test]
    fn rows_of_an_empty_store_have_their_defaults() {
        let store = MemoryStore::default();
        assert_eq!(
            applied_position(&store).unwrap(),
            AppliedPosition::default()
        );
        assert_eq!(purge_floor(&store).unwrap(), 0);
        assert_eq!(engine_version(&store).unwrap(), ENGINE_VERSION_FIRST);
        assert_eq!(identity(&store).unwrap(), None);
        assert_eq!(reports_void(&store).unwrap(), 0);
    }

    #[test]
    fn only_the_newest_digest_reports_are_kept() {
        let mut store = MemoryStore::default();
        let mut writes = Writes::new();
        for index in [10, 20, 300] {
            put_digest_reports(&mut writes, index, &BTreeMap::from([(1, 5)]));
        }
        store.write(&writes);
        let mut trim = Writes::new();
        trim_digest_reports(&store, &mut trim, 2).unwrap();
        store.write(&trim);
        assert!(digest_reports(&store, 10).unwrap().is_empty());
        assert_eq!(
            digest_reports(&store, 300).unwrap(),
            BTreeMap::from([(1, 5)])
        );
    }

    #[test]
    fn the_local_rows_do_not_travel() {
        let range = traveling();
        assert!(PROGRESS.to_vec() < range.to && MEMBERSHIP.to_vec() < range.to);
        assert!(IDENTITY.to_vec() >= range.to && DIVERGENCE.to_vec() >= range.to);
        assert!(REPORTS_VOID.to_vec() >= range.to);
    }
}
