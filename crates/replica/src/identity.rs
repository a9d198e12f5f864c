//! Whose data directory it is, told by log and state alike.

use crate::log::device::{DeviceError, Durability, Fact, LogDevice, Operation};
use crate::log::store::LogOpenError;
use crate::raft::type_config::LogId;
use crate::replica::Config;
use crate::start::StartError;
use crate::state::rows::{self, Identity, RowError};
use crate::state::store::StateStore;
use flotilla_engine::NodeId;
use flotilla_engine::store::Writes;

/// Reads the identity of the directory, or gives a new one its own.
///
/// The log's copy is written first and durably. So log without state is a first start that was cut
/// short, unless the log has been purged; state without log means that the votes are lost.
pub(crate) fn establish(
    config: &Config,
    device: &dyn LogDevice,
    store: &dyn StateStore,
) -> Result<Identity, StartError> {
    let log_error = |error: DeviceError| StartError::Log {
        directory: config.data_directory.clone(),
        error: LogOpenError::Device(error),
    };
    let state_error = |error: RowError| StartError::State {
        directory: config.data_directory.clone(),
        error,
    };
    let in_log = device.facts().map_err(log_error)?.remove(&Fact::Identity);
    let in_log = in_log
        .map(|bytes| rows::decode_identity(&bytes))
        .transpose()
        .map_err(state_error)?;
    let reader = store.reader();
    let in_state = rows::identity(reader.as_ref()).map_err(state_error)?;
    let identity = match (in_log, in_state) {
        (Some(log), Some(state)) if log != state => {
            let text = format!(
                "the log is of node {}, the state of {}",
                log.node_id, state.node_id
            );
            return Err(StartError::Mixed(text));
        }
        (None, Some(_)) => {
            let text = "the log is gone, and with it this member's votes";
            return Err(StartError::Mixed(text.to_owned()));
        }
        (Some(identity), _) => identity,
        (None, None) => Identity {
            node_id: config.node_id.0,
            incarnation: rand::random(),
        },
    };
    if identity.node_id != config.node_id.0 {
        let found = NodeId(identity.node_id);
        return Err(StartError::OtherNode {
            expected: config.node_id,
            found,
        });
    }
    let bytes = rows::encode_identity(&identity);
    let set = Operation::Set {
        fact: Fact::Identity,
        bytes,
    };
    device
        .write(&[set], Durability::Synced)
        .map_err(log_error)?;
    let mut writes = Writes::new();
    rows::put_identity(&mut writes, &identity);
    let written = store.write(&writes).and_then(|()| store.flush());
    written.map_err(|error| state_error(error.into()))?;
    Ok(identity)
}

/// Refuses a state that this binary would go on with differently from the other members.
pub(crate) fn check_engine_version(known: u32, store: &dyn StateStore) -> Result<(), StartError> {
    let agreed = rows::engine_version(store.reader().as_ref());
    let agreed = agreed.map_err(|error| StartError::Mixed(error.to_string()))?;
    if agreed > known {
        return Err(StartError::EngineVersionUnknown { agreed, known });
    }
    Ok(())
}

/// Checks that the state has what the log no longer has, and that a snapshot covers it too, since
/// openraft sends that one to members which the log does not reach.
pub(crate) fn check_together(
    purged: Option<LogId>,
    store: &dyn StateStore,
) -> Result<(), StartError> {
    let mixed = |error: &dyn std::fmt::Display| StartError::Mixed(error.to_string());
    let progress = rows::progress(store.reader().as_ref()).map_err(|error| mixed(&error))?;
    let purged = purged.map(|log_id| log_id.index());
    if progress.index() < purged {
        let applied = progress.index();
        let text = format!("the log begins after {purged:?}, but the state ends at {applied:?}");
        return Err(StartError::Mixed(text));
    }
    let covered = match store.captured() {
        Some(capture) => rows::progress(capture.as_ref())
            .map_err(|error| mixed(&error))?
            .index(),
        None => None,
    };
    if purged.is_some() && covered < purged {
        store.capture().map_err(|error| mixed(&error))?;
    }
    Ok(())
}
