//! The identity of a data directory, stored in both log and state.

use crate::log::device::{DeviceError, Durability, Fact, LogDevice, Operation};
use crate::log::store::LogOpenError;
use crate::membership::StoredMembership;
use crate::raft::type_config::LogId;
use crate::replica::Config;
use crate::start_error::StartError;
use crate::state::rows::{self, AppliedPosition, Identity, RowError};
use crate::state::store::StateStore;
use flotilla_engine::NodeId;
use flotilla_engine::store::{Reader, Writes};
use std::path::Path;

/// Why log and state do not identify the directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("the log belongs to node {log}, the state to node {state}")]
    Mixed { log: u64, state: u64 },
    #[error("the log is missing, and with it this member's votes")]
    LogGone,
    #[error("the log begins after {purged}, but the state ends at {applied:?}")]
    StateBehind { purged: u64, applied: Option<u64> },
}

impl IdentityError {
    /// The error that ends the start.
    pub(crate) fn into_start_error(self, directory: &Path) -> StartError {
        let directory = directory.to_owned();
        match self {
            Self::Device(error) => StartError::Log {
                directory,
                error: LogOpenError::Device(error),
            },
            Self::Row(error) => StartError::State { directory, error },
            Self::Mixed { .. } | Self::LogGone | Self::StateBehind { .. } => {
                StartError::Mixed(self.to_string())
            }
        }
    }
}

/// Reads the identity of the directory, or gives a new directory one.
///
/// A directory that another node began to use and that was never part of a cluster counts as new: a
/// node whose start was refused leaves such a directory behind.
pub(crate) fn establish(
    config: &Config,
    device: &dyn LogDevice,
    store: &dyn StateStore,
) -> Result<Identity, StartError> {
    let identity = choose(config.node_id, device, store);
    let identity = identity.map_err(|error| error.into_start_error(&config.data_directory))?;
    if identity.node_id != config.node_id.0 {
        let found = NodeId(identity.node_id);
        return Err(StartError::OtherNode {
            expected: config.node_id,
            found,
        });
    }
    let written = write(&identity, device, store);
    written.map_err(|error| error.into_start_error(&config.data_directory))?;
    Ok(identity)
}

/// The identity that the directory has or gets.
fn choose(
    node_id: NodeId,
    device: &dyn LogDevice,
    store: &dyn StateStore,
) -> Result<Identity, IdentityError> {
    let new = || Identity {
        node_id: node_id.0,
        incarnation: rand::random(),
    };
    match read(device, store.reader().as_ref()) {
        Ok(None) => Ok(new()),
        Ok(Some(identity)) if identity.node_id == node_id.0 => Ok(identity),
        // Also if a crash came between the two writes of a new identity.
        Ok(Some(_)) | Err(IdentityError::Mixed { .. }) if is_unused(device, store)? => Ok(new()),
        Ok(Some(other)) => Ok(other),
        Err(error) => Err(error),
    }
}

/// The directory's identity; `None` if no node has used it.
///
/// The log's copy is written first and durably. So a log without a state is an interrupted first
/// start, unless the log has been purged; a state without a log means that the votes are lost.
pub(crate) fn read(
    device: &dyn LogDevice,
    state: &dyn Reader,
) -> Result<Option<Identity>, IdentityError> {
    let in_log = device.facts()?.remove(&Fact::Identity);
    let in_log = in_log
        .map(|bytes| rows::decode_identity(&bytes))
        .transpose()?;
    match (in_log, rows::identity(state)?) {
        (Some(log), Some(state)) if log != state => Err(IdentityError::Mixed {
            log: log.node_id,
            state: state.node_id,
        }),
        (None, Some(_)) => Err(IdentityError::LogGone),
        (in_log, _) => Ok(in_log),
    }
}

/// Whether the directory's node never voted, wrote or received anything: no cluster counts on what
/// it has.
fn is_unused(device: &dyn LogDevice, store: &dyn StateStore) -> Result<bool, IdentityError> {
    let mut has_records = false;
    device.read(0, u64::MAX, &mut |_, _| {
        has_records = true;
        false
    })?;
    let mut facts = device.facts()?.into_keys();
    let has_facts = facts.any(|fact| fact != Fact::Identity);
    let reader = store.reader();
    let has_state = rows::applied_position(reader.as_ref())? != AppliedPosition::default()
        || rows::stored_membership(reader.as_ref())? != StoredMembership::default();
    Ok(!has_records && !has_facts && !has_state)
}

fn write(
    identity: &Identity,
    device: &dyn LogDevice,
    store: &dyn StateStore,
) -> Result<(), IdentityError> {
    let set = Operation::Set {
        fact: Fact::Identity,
        bytes: rows::encode_identity(identity),
    };
    device.write(&[set], Durability::Synced)?;
    let mut writes = Writes::new();
    rows::put_identity(&mut writes, identity);
    let written = store.write(&writes).and_then(|()| store.flush());
    written.map_err(RowError::from)?;
    Ok(())
}

/// Refuses a state whose engine version this binary does not know, since it would decide
/// differently from the other members.
pub(crate) fn check_engine_version(known: u32, store: &dyn StateStore) -> Result<(), StartError> {
    let agreed = rows::engine_version(store.reader().as_ref());
    let agreed = agreed.map_err(|error| StartError::Mixed(error.to_string()))?;
    if agreed > known {
        return Err(StartError::EngineVersionUnknown { agreed, known });
    }
    Ok(())
}

/// Checks that the state has what the log no longer has.
pub(crate) fn check_together(
    purged: Option<LogId>,
    state: &dyn Reader,
) -> Result<(), IdentityError> {
    let applied = rows::applied_position(state)?.index();
    match purged.map(|log_id| log_id.index()) {
        Some(purged) if applied < Some(purged) => {
            Err(IdentityError::StateBehind { purged, applied })
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes a snapshot cover what the log no longer has, since openraft sends the snapshot to members
/// that are behind the log.
pub(crate) fn cover_purged(
    purged: Option<LogId>,
    store: &dyn StateStore,
) -> Result<(), IdentityError> {
    let covered = match store.captured() {
        Some(capture) => rows::applied_position(capture.as_ref())?.index(),
        None => None,
    };
    if purged.is_some() && covered < purged.map(|log_id| log_id.index()) {
        store.capture().map_err(RowError::from)?;
    }
    Ok(())
}
