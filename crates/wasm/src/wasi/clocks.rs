//! Clocks and random bytes.

use super::answer::{Errno, Refused};
use super::memory::Memory;
use super::process::Process;
use crate::guest::Guest;
use crate::limits::WASI_COPY_BYTES_MAX;
use crate::span::Span;
use rand::Rng;
use std::time::{Duration, SystemTime};

/// The clocks that a guest can read. CPU time is not exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The time of day.
    Realtime,
    /// The time since the call began.
    Monotonic,
}

impl Clock {
    pub(super) fn new(id: u32) -> Result<Self, Errno> {
        match id {
            0 => Ok(Self::Realtime),
            1 => Ok(Self::Monotonic),
            _ => Err(Errno::Invalid),
        }
    }

    pub(super) fn now(self, process: &Process) -> Duration {
        match self {
            // A machine whose clock is before 1970 has no time of day.
            Self::Realtime => SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
            Self::Monotonic => process.started.elapsed(),
        }
    }
}

pub(super) fn resolution(memory: &mut Memory<'_>, clock: u32, result: u32) -> Result<(), Refused> {
    Clock::new(clock)?;
    Ok(memory.store(result, 1_u64.to_le_bytes())?)
}

pub(super) fn time(
    process: &Process,
    memory: &mut Memory<'_>,
    clock: u32,
    result: u32,
) -> Result<(), Refused> {
    let nanoseconds = Clock::new(clock)?.now(process).as_nanos();
    let nanoseconds = u64::try_from(nanoseconds).unwrap_or(u64::MAX);
    Ok(memory.store(result, nanoseconds.to_le_bytes())?)
}

/// Fills a range. It may be as large as the memory, so the deadline is checked in between.
pub(super) fn random(
    guest: &Guest<Process>,
    memory: &mut Memory<'_>,
    span: Span,
) -> Result<(), Refused> {
    let mut source = rand::rng();
    for piece in memory.write(span)?.chunks_mut(WASI_COPY_BYTES_MAX) {
        guest.deadline.check()?;
        source.fill_bytes(piece);
    }
    Ok(())
}
