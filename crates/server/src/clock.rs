//! The node's clocks; in builds with debug assertions, clocks that chaos tests can set wrong.

use flotilla_replica::{Clock, SystemClock};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// Names a file with the milliseconds by which the wall clock is wrong; a missing or empty file
/// means none.
const VARIABLE: &str = "FLO_CLOCK_OFFSET_FILE";

/// The clocks that this process believes.
pub(crate) fn clock() -> Arc<dyn Clock> {
    let file = env::var_os(VARIABLE).filter(|_| cfg!(debug_assertions));
    match file {
        Some(file) => Arc::new(WrongClock {
            system: SystemClock::default(),
            offset_file: file.into(),
        }),
        None => Arc::new(SystemClock::default()),
    }
}

/// The system's clocks, but for a wall clock that is off by what a file says.
struct WrongClock {
    system: SystemClock,
    offset_file: PathBuf,
}

impl Clock for WrongClock {
    fn wall_ms(&self) -> u64 {
        let text = fs::read_to_string(&self.offset_file).unwrap_or_default();
        let offset_ms: i64 = text.trim().parse().unwrap_or(0);
        self.system.wall_ms().saturating_add_signed(offset_ms)
    }

    fn monotonic_ms(&self) -> u64 {
        self.system.monotonic_ms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_moves_the_wall_clock_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let clock = WrongClock {
            system: SystemClock::default(),
            offset_file: folder.path().join("offset"),
        };
        let before = clock.wall_ms();
        fs::write(&clock.offset_file, "-86400000\n").unwrap();
        assert!(clock.wall_ms() < before - 80_000_000);
        fs::write(&clock.offset_file, "86400000").unwrap();
        assert!(clock.wall_ms() > before + 80_000_000);
        assert!(clock.monotonic_ms() < 80_000_000);
    }
}
