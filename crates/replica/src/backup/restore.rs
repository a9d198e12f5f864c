//! Restores a backup to the data directory of a new cluster.
//!
//! The directory holds a file `RESTORING` until everything is durable; a node refuses to start on
//! such a directory. A failed restore is removed.

use super::check::{BackupSummary, Inspection};
use super::fault::BackupFault;
use super::reader::Reader;
use crate::log::device::{DeviceError, Durability, Fact, LogDevice, Operation};
use crate::log::rocks::RocksLog;
use crate::log::vote::{self, Vote};
use crate::membership::{Member, Membership, StoredMembership};
use crate::raft::type_config::LogId;
use crate::rocks_storage::{LOCK, RESTORING, RocksStorage};
use crate::state::fsync::{sync_directory, sync_tree};
use crate::state::rocks::RocksState;
use crate::state::rows::{self, Identity, RowError};
use crate::state::store::StateStore;
use crate::storage::{DirectoryLock, Storage};
use flotilla_engine::store::{StoreError, Writes};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A folder that file systems create; it holds no data.
const LOST_AND_FOUND: &str = "lost+found";

/// The only member of the new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredMember {
    /// The member's id.
    pub node_id: u64,
    /// Its peer address for later members, as `host:port`.
    pub peer_address: String,
    /// Its address for clients, as `host:port`.
    pub client_address: String,
}

/// Why a backup was not restored. A failed restore leaves nothing behind.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup is unusable.
    #[error(transparent)]
    Backup(#[from] BackupFault),
    /// The directory is not empty.
    #[error("expected an empty directory {}, but it has something in it", .0.display())]
    NotEmpty(PathBuf),
    /// The directory is not writable.
    #[error("expected to write to {}, but {error}", directory.display())]
    Directory {
        /// The data directory.
        directory: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The stores cannot be written.
    #[error("expected to write the state, but {0}")]
    Store(Box<dyn std::error::Error + Send + Sync>),
}

impl RestoreError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Backup(fault) => fault.hint(),
            Self::NotEmpty(_) => "give a directory that does not exist yet; nothing was changed",
            Self::Directory { .. } | Self::Store(_) => {
                "check the disk's free space and permissions"
            }
        }
    }
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.0)
    }
}

impl From<DeviceError> for RestoreError {
    fn from(error: DeviceError) -> Self {
        Self::Store(error.0)
    }
}

impl From<RowError> for RestoreError {
    fn from(error: RowError) -> Self {
        Self::Store(Box::new(error))
    }
}

/// Makes the data directory of a new cluster from a backup: the state as it was, and this member
/// only. Everything is durable when it returns. Calls `observe` with the number of bytes read; the
/// input is read in small pieces too: pass a buffered reader. Returns the backup's summary and the
/// new cluster's id.
///
/// # Errors
/// [`RestoreError`]; the directory is then as it was.
pub fn restore(
    input: impl Read,
    directory: &Path,
    member: RestoredMember,
    mut observe: impl FnMut(u64),
) -> Result<(BackupSummary, String), RestoreError> {
    // First, so that an invalid file leaves no trace.
    let mut reader = Reader::open(input)?;
    let was_there = directory.try_exists();
    let was_there = was_there.map_err(|error| RestoreError::Directory {
        directory: directory.to_owned(),
        error,
    })?;
    let lock = begin(directory)?;
    let restored = fill(&mut reader, directory, member, &mut observe);
    drop(lock);
    if restored.is_err()
        && let Err(error) = undo(directory, was_there)
    {
        tracing::warn!(directory = %directory.display(), %error, "a partly restored directory \
                                                                  could not be deleted");
    }
    restored
}

/// Removes everything that was put into a directory; the mark last.
fn undo(directory: &Path, was_there: bool) -> io::Result<()> {
    for part in RocksState::PARTS.into_iter().chain(["log"]) {
        match fs::remove_dir_all(directory.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if !was_there {
        return fs::remove_dir_all(directory);
    }
    fs::remove_file(directory.join(LOCK))?;
    fs::remove_file(directory.join(RESTORING))
}

/// Marks an empty directory as one that is being restored.
fn begin(directory: &Path) -> Result<DirectoryLock, RestoreError> {
    let failed = |error| RestoreError::Directory {
        directory: directory.to_owned(),
        error,
    };
    fs::create_dir_all(directory).map_err(failed)?;
    for entry in fs::read_dir(directory).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != LOST_AND_FOUND {
            return Err(RestoreError::NotEmpty(directory.to_owned()));
        }
    }
    let lock = RocksStorage.lock(directory).map_err(failed)?;
    let marked = File::create(directory.join(RESTORING)).and_then(|marker| marker.sync_all());
    marked
        .and_then(|()| sync_directory(directory))
        .map_err(failed)?;
    Ok(lock)
}

fn fill<R: Read>(
    reader: &mut Reader<R>,
    directory: &Path,
    member: RestoredMember,
    observe: &mut dyn FnMut(u64),
) -> Result<(BackupSummary, String), RestoreError> {
    let state = RocksState::open(directory)?;
    let mut incoming = state.receive()?;
    let mut inspection = Inspection::default();
    while let Some(rows) = reader.next()? {
        inspection.add(&rows)?;
        incoming.write(&rows)?;
        observe(reader.offset());
    }
    let summary = inspection.end(reader.header(), reader.offset())?;
    let identity = Identity {
        node_id: member.node_id,
        incarnation: rand::random(),
    };
    let cluster_id = format!("{:032x}", rand::random::<u128>());
    let log_id = reader.header().log_id();
    let membership = alone(&identity, member, cluster_id.clone());
    let membership = StoredMembership::new(Some(log_id), membership);
    let mut writes = Writes::new();
    rows::put_new_cluster(incoming.reader(), &mut writes, &membership)?;
    rows::put_identity(&mut writes, &identity);
    incoming.write(&writes)?;
    incoming.install()?;
    drop(state);
    begin_log(directory, &identity, log_id)?;
    end(directory).map_err(|error| RestoreError::Directory {
        directory: directory.to_owned(),
        error,
    })?;
    Ok((summary, cluster_id))
}

/// The members of the new cluster.
fn alone(identity: &Identity, member: RestoredMember, cluster_id: String) -> Membership {
    let RestoredMember {
        node_id,
        peer_address,
        client_address,
    } = member;
    let member = Member {
        cluster_id,
        peer_address,
        client_address,
        incarnation: identity.incarnation,
    };
    let members = BTreeMap::from([(node_id, member)]);
    Membership::new(vec![BTreeSet::from([node_id])], members)
        .expect("the one voter is the one member")
}

/// A log that is purged up to the state. The node has voted in the state's term, so that it is
/// elected in a later one: terms in a log never decrease.
fn begin_log(directory: &Path, identity: &Identity, log_id: LogId) -> Result<(), RestoreError> {
    let failed = |error| RestoreError::Directory {
        directory: directory.to_owned(),
        error,
    };
    let place = directory.join("log");
    fs::create_dir(&place).map_err(failed)?;
    let device = RocksLog::open(&place).map_err(|error| RestoreError::Store(Box::new(error)))?;
    let vote = Vote::new(crate::membership::term_of(&log_id), identity.node_id);
    let facts = [
        (Fact::Identity, rows::encode_identity(identity)),
        (Fact::Vote, vote::encode_vote(&vote)),
        (Fact::Purged, vote::encode_log_id(&log_id)),
        (Fact::Committed, vote::encode_log_id(&log_id)),
    ];
    let facts = facts.map(|(fact, bytes)| Operation::Set { fact, bytes });
    device.write(&facts, Durability::Synced)?;
    drop(device);
    sync_tree(&place).map_err(failed)
}

/// Removes the mark once everything is durable.
fn end(directory: &Path) -> io::Result<()> {
    for part in RocksState::PARTS {
        sync_directory(&directory.join(part))?;
    }
    sync_directory(directory)?;
    fs::remove_file(directory.join(RESTORING))?;
    sync_directory(directory)?;
    match directory.canonicalize()?.parent() {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}
