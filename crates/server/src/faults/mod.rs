//! Faults on demand, for the chaos tests (`jepsen/README.md`): clocks that are wrong, a disk that is
//! slow, bugs. A build with debug assertions obeys its environment; any other build does none of this.

mod clock;
mod disk;
pub(crate) mod planted;

use self::clock::WrongClock;
use self::disk::FaultyStorage;
use flotilla_replica::{Clock, Hooks, RocksStorage, Storage};
use std::env;
use std::path::PathBuf;
use std::sync::Arc;

/// Names a folder whose files say what is wrong around this node; a file that is missing or
/// empty says nothing.
const VARIABLE: &str = "FLO_FAULTS_DIR";

/// What a replica finds around it.
pub(crate) struct Surroundings {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) storage: Arc<dyn Storage>,
}

/// The clock and the disk as they are, or as the chaos tests want them to be.
pub(crate) fn surroundings() -> Surroundings {
    let real = Hooks::default();
    let folder = env::var_os(VARIABLE).filter(|_| cfg!(debug_assertions));
    match folder.map(PathBuf::from) {
        Some(folder) => {
            tracing::warn!(folder = %folder.display(), "clock and disk are as wrong as this folder says");
            Surroundings {
                clock: Arc::new(WrongClock::new(folder.join("clock"))),
                storage: Arc::new(FaultyStorage::new(RocksStorage, folder)),
            }
        }
        None => Surroundings {
            clock: real.clock,
            storage: real.storage,
        },
    }
}
