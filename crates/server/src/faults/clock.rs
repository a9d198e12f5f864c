//! Fault injection: a wrong wall clock.

use flotilla_replica::{Clock, SystemClock};
use std::fs;
use std::path::PathBuf;

/// The system's clocks, with a wall clock that is off by what a file contains: `OFFSET_MS
/// [PER_MILLE SINCE_MS]`. The optional part makes the clock run fast or slow since a time of the
/// true clock.
pub(super) struct WrongClock {
    system: SystemClock,
    file: PathBuf,
}

impl WrongClock {
    pub(super) fn new(file: PathBuf) -> Self {
        Self {
            system: SystemClock::default(),
            file,
        }
    }
}

impl Clock for WrongClock {
    fn wall_ms(&self) -> u64 {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let true_ms = self.system.wall_ms();
        true_ms.saturating_add_signed(error_ms(&text, true_ms))
    }

    fn monotonic_ms(&self) -> u64 {
        self.system.monotonic_ms()
    }
}

/// The clock's error.
fn error_ms(text: &str, true_ms: u64) -> i64 {
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    let offset_ms: i64 = numbers.next().unwrap_or(0);
    let per_mille = numbers.next().unwrap_or(0);
    let since_ms = numbers.next().unwrap_or(0);
    let elapsed_ms = i64::try_from(true_ms)
        .unwrap_or(i64::MAX)
        .saturating_sub(since_ms);
    offset_ms.saturating_add(elapsed_ms.saturating_mul(per_mille) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_moves_the_wall_clock_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let clock = WrongClock::new(folder.path().join("clock"));
        let before = clock.wall_ms();
        fs::write(&clock.file, "-86400000\n").unwrap();
        assert!(clock.wall_ms() < before - 80_000_000);
        fs::write(&clock.file, "86400000").unwrap();
        assert!(clock.wall_ms() > before + 80_000_000);
        assert!(clock.monotonic_ms() < 80_000_000);
    }

    #[test]
    fn a_clock_that_runs_too_fast_is_the_more_wrong_the_longer_it_runs() {
        assert_eq!(error_ms("5 200 1000", 1_000), 5);
        assert_eq!(error_ms("5 200 1000", 2_000), 205);
        assert_eq!(error_ms("5 -200 1000", 11_000), -1_995);
        assert_eq!(error_ms("", 11_000), 0);
    }
}
