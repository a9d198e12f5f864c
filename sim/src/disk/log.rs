//! The log of a simulated machine.

use super::volatile::{Contents, Volatile};
use crate::random::Random;
use flotilla_replica::{
    DeviceError, Durability, Fact, LogContents, LogDevice, Operation, RecordVisitor,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The log of a simulated machine.
#[derive(Default)]
pub(crate) struct SimulatedLog {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    contents: Volatile<LogContents>,
    /// Whether a sync only pretends: a planted bug.
    is_lying: bool,
    /// After how many writes the power fails during the next one, and whether that write survives.
    failing_after: Option<(u64, bool)>,
    has_failed: bool,
}

impl Contents for LogContents {
    type Write = Vec<Operation>;

    fn carry_out(&mut self, write: &Vec<Operation>) {
        Self::carry_out(self, write);
    }
}

impl SimulatedLog {
    /// A disk that reports syncs that it has not done: a planted bug.
    pub(crate) fn lie(&self) {
        self.state().is_lying = true;
    }

    /// Makes the power fail during one of the next writes.
    pub(crate) fn fail_soon(&self, random: &mut Random) {
        let survives = random.chance(500);
        self.state().failing_after = Some((random.within(0..20), survives));
    }

    /// Whether the power has failed during a write: nothing was written since.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Power is restored; some of the unsynced writes are gone.
    pub(crate) fn cut_power(&self, random: &mut Random) -> u64 {
        self.state().contents.cut_power(random)
    }

    /// Forgets past and planned power failures.
    pub(crate) fn repair(&self) {
        let mut state = self.state();
        (state.failing_after, state.has_failed) = (None, false);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogDevice for SimulatedLog {
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError> {
        Ok(self.state().contents.current().facts.clone())
    }

    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError> {
        let state = self.state();
        state.contents.current().read(from, to, visitor);
        Ok(())
    }

    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError> {
        let state = &mut *self.state();
        if state.has_failed {
            return Err(no_power());
        }
        if let Some((writes_left, survives)) = state.failing_after {
            if writes_left == 0 {
                state.has_failed = true;
                if survives {
                    state.contents.write(operations.to_vec());
                    state.contents.sync();
                }
                return Err(no_power());
            }
            state.failing_after = Some((writes_left - 1, survives));
        }
        state.contents.write(operations.to_vec());
        if durability == Durability::Synced && !state.is_lying {
            state.contents.sync();
        }
        Ok(())
    }
}

fn no_power() -> DeviceError {
    DeviceError("the power has failed".into())
}
