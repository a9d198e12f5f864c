//! Fault injection for the chaos tests (`jepsen/README.md`): wrong clocks, a slow disk, bugs. Only
//! a build with debug assertions reads these environment variables.

mod clock;
mod disk;
pub(crate) mod exercise;
pub(crate) mod planted;

use self::clock::WrongClock;
use self::disk::FaultyStorage;
use flotilla_replica::{Environment, RocksStorage};
use std::env;
use std::path::PathBuf;
use std::sync::Arc;

/// Names a folder whose files describe the faults; a missing or empty file means no fault.
const VARIABLE: &str = "FLO_FAULTS_DIR";

/// The environment of a replica: its clock and its disk have the faults that the chaos tests ask for.
pub(crate) fn faulty_environment() -> Environment {
    let folder = env::var_os(VARIABLE).filter(|_| cfg!(debug_assertions));
    let Some(folder) = folder.map(PathBuf::from) else {
        return Environment::default();
    };
    tracing::warn!(folder = %folder.display(), "clock and disk faults are read from this folder");
    Environment {
        clock: Arc::new(WrongClock::new(folder.join("clock"))),
        storage: Arc::new(FaultyStorage::new(RocksStorage, folder)),
        ..Environment::default()
    }
}
