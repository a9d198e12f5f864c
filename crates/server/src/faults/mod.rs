//! Fault injection for the chaos tests (`jepsen/README.md`): wrong clocks, a slow disk, bugs. Only
//! a build with debug assertions reads these environment variables.

mod clock;
mod disk;
pub(crate) mod exercise;
pub(crate) mod planted;

use self::clock::WrongClock;
use self::disk::FaultyStorage;
use flotilla_replica::{Clock, Environment, RocksStorage, Storage};
use std::env;
use std::path::PathBuf;
use std::sync::Arc;

/// Names a folder whose files describe the faults; a missing or empty file means no fault.
const VARIABLE: &str = "FLO_FAULTS_DIR";

/// The environment that a replica gets, with faults.
pub(crate) struct FaultyEnvironment {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) storage: Arc<dyn Storage>,
}

/// The clock and the disk, with the faults that the chaos tests ask for.
pub(crate) fn faulty_environment() -> FaultyEnvironment {
    let real = Environment::default();
    let folder = env::var_os(VARIABLE).filter(|_| cfg!(debug_assertions));
    match folder.map(PathBuf::from) {
        Some(folder) => {
            tracing::warn!(folder = %folder.display(), "clock and disk faults are read from this \
                                                        folder");
            FaultyEnvironment {
                clock: Arc::new(WrongClock::new(folder.join("clock"))),
                storage: Arc::new(FaultyStorage::new(RocksStorage, folder)),
            }
        }
        None => FaultyEnvironment {
            clock: real.clock,
            storage: real.storage,
        },
    }
}
