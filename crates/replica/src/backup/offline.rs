//! An offline backup, from the data directory of a stopped node: the last resort when most of the
//! voters are permanently lost.
//!
//! The backup includes the node's whole log, as if all of it had been committed. Log and state are only read, and the
//! log is applied to a copy of the state, which is deleted at the end: the data directory stays byte for byte as it was,
//! and the node can still return to its cluster.

use super::header::{BackupHeader, BackupOrigin, Source};
use super::writer::Writer;
use crate::clock::{StampClock, SystemClock};
use crate::environment::NoObserver;
use crate::identity;
use crate::log::device::{Fact, LogDevice};
use crate::log::record;
use crate::log::rocks::RocksLog;
use crate::log::vote;
use crate::rocks_storage::{FrozenDirectory, RocksStorage};
use crate::state::applier::{AppliedState, Applier};
use crate::state::generation::Generation;
use crate::state::rocks::RocksState;
use crate::state::rows;
use crate::state::store::StateStore;
use crate::storage::{DirectoryLock, StorageError};
use bytes::Bytes;
use flotilla_engine::ENGINE_VERSION;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of the data directory for the copy of the state.
const COPY: &str = "backup-copy";

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a data directory cannot be backed up.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// It is not a data directory.
    #[error("expected the data directory of a node, but {} is not one", .0.display())]
    NotADataDirectory(PathBuf),
    /// A process uses it.
    #[error("expected no node to use {}, but one does", .0.display())]
    InUse(PathBuf),
    /// It is unreadable.
    #[error("expected to read {}, but {error}", directory.display())]
    Unreadable {
        /// The data directory.
        directory: PathBuf,
        /// What failed.
        error: Cause,
    },
    /// The node was never part of a cluster.
    #[error("expected the data of a cluster, but the node of {} never belonged to one", .0.display())]
    NoCluster(PathBuf),
    /// Its state has diverged from the majority's (design rule 11).
    #[error("expected the same state as on the other members, but the one in {} has \
             diverged", .0.display())]
    Diverged(PathBuf),
    /// The backup cannot be written.
    #[error("expected to write the backup, but {0}")]
    Unwritable(io::Error),
}

impl OfflineError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotADataDirectory(_) => "give the node's `data_dir`",
            Self::InUse(_) => "stop the node first, or make an online backup: without --data-dir",
            Self::Unreadable { .. } => "try the data directory of another node, or an older backup",
            Self::NoCluster(_) => "there is nothing to back up",
            Self::Diverged(_) => "use the data directory of another node, or an older backup",
            Self::Unwritable(_) => "check the disk's free space and permissions",
        }
    }
}

/// Backs up the data directory of a stopped node, with all entries of its log, and passes the bytes
/// of the file to `write`. `version` is that of the binary.
///
/// # Errors
/// [`OfflineError`]; what was written until then is not a backup.
pub fn backup_directory(
    directory: &Path,
    version: String,
    write: &mut dyn FnMut(Bytes) -> io::Result<()>,
) -> Result<BackupHeader, OfflineError> {
    check_is_data(directory)?;
    let failed = |cause: Cause| OfflineError::Unreadable {
        directory: directory.to_owned(),
        error: cause,
    };
    let opened = open(directory)?;
    // Dropped after what is open in it.
    let copy = Copy::new(directory).map_err(|error| failed(error.into()))?;
    let state = apply_rest(&opened, &copy.0).map_err(failed)?;
    let state = state.ok_or_else(|| OfflineError::Diverged(directory.to_owned()))?;
    let source = Source {
        node_id: opened.node_id,
        origin: BackupOrigin::Directory,
        version,
    };
    let rows = state.reader();
    let header = BackupHeader::of(rows.as_ref(), source)
        .map_err(|error| failed(error.into()))?
        .ok_or_else(|| OfflineError::NoCluster(directory.to_owned()))?;
    let mut writer = Writer::new(header.clone(), rows);
    while let Some(piece) = writer.next().map_err(|error| failed(error.into()))? {
        write(piece).map_err(OfflineError::Unwritable)?;
    }
    Ok(header)
}

/// Refuses a directory without a node's state, before anything is created there.
fn check_is_data(directory: &Path) -> Result<(), OfflineError> {
    match fs::metadata(directory.join(RocksState::PARTS[0])) {
        Ok(found) if found.is_dir() => Ok(()),
        Err(error) if !is_absence(&error) => Err(OfflineError::Unreadable {
            directory: directory.to_owned(),
            error: error.into(),
        }),
        Ok(_) | Err(_) => Err(OfflineError::NotADataDirectory(directory.to_owned())),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The opened data directory of a member.
struct OpenDirectory {
    node_id: u64,
    log: RocksLog,
    state: Generation,
    _lock: Option<DirectoryLock>,
}

fn open(directory: &Path) -> Result<OpenDirectory, OfflineError> {
    let failed = |cause: Cause| OfflineError::Unreadable {
        directory: directory.to_owned(),
        error: cause,
    };
    let no_cluster = || OfflineError::NoCluster(directory.to_owned());
    let opened = RocksStorage.open_frozen(directory);
    let opened = opened.map_err(|error| match error {
        StorageError::InUse => OfflineError::InUse(directory.to_owned()),
        error => failed(error.into()),
    })?;
    let FrozenDirectory { log, state, lock } = opened;
    let state = state.ok_or_else(no_cluster)?;
    let divergence = rows::divergence(&state);
    if divergence.map_err(|error| failed(error.into()))?.is_some() {
        return Err(OfflineError::Diverged(directory.to_owned()));
    }
    let identity = identity::read(&log, &state).map_err(|error| failed(error.into()))?;
    let identity = identity.ok_or_else(no_cluster)?;
    let facts = log.facts().map_err(|error| failed(error.into()))?;
    let purged = facts.get(&Fact::Purged);
    let purged = purged.map(|bytes| vote::decode_log_id(bytes)).transpose();
    let purged = purged.map_err(|error| failed(error.into()))?;
    identity::check_together(purged, &state).map_err(|error| failed(error.into()))?;
    Ok(OpenDirectory {
        node_id: identity.node_id,
        log,
        state,
        _lock: lock,
    })
}

/// A copy of the state with the rest of the log applied to it; `None` if one of those entries
/// proves that the state has diverged.
fn apply_rest(opened: &OpenDirectory, place: &Path) -> Result<Option<RocksState>, Cause> {
    let state = RocksState::copy_of(&opened.state, place)?;
    let applied_state = AppliedState::new();
    let clock = StampClock::new(Arc::new(SystemClock::default()), opened.node_id);
    let applier = Applier {
        node_id: opened.node_id,
        digest_interval: u64::MAX,
        engine_version: ENGINE_VERSION,
        store: Arc::new(state.clone()),
        clock: Arc::new(clock),
        applied_state: applied_state.clone(),
        observer: Arc::new(NoObserver),
    };
    let mut applier = applier.open()?;
    let applied = rows::applied_position(state.reader().as_ref())?.log_id;
    let mut failure = None;
    opened.log.read(
        applied.map_or(0, |applied| applied.index()),
        u64::MAX,
        &mut |_, bytes| match record::decode(bytes) {
            // A log with another entry at this index does not continue the state.
            Ok(entry) if applied.is_some_and(|applied| entry.log_id.index() == applied.index()) => {
                Some(entry.log_id) == applied
            }
            Ok(entry) => {
                failure = applier.apply(entry, None).map_err(Cause::from).err();
                failure.is_none()
            }
            Err(error) => {
                failure = Some(error.into());
                false
            }
        },
    )?;
    let is_diverged = applied_state.divergence.borrow().is_some();
    failure.map_or(Ok((!is_diverged).then_some(state)), Err)
}

/// The folder of the copy, which is deleted with it. A leftover of a killed process is deleted
/// first.
struct Copy(PathBuf);

impl Copy {
    fn new(directory: &Path) -> io::Result<Self> {
        let place = directory.join(COPY);
        match fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self(place)),
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(directory = %self.0.display(), %error, "a copy of the state could not \
                                                                   be deleted");
        }
    }
}
