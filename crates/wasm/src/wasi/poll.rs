//! `poll_oneoff`: waits for time to pass; streams are always ready.

use super::answer::{Errno, Refused};
use super::clocks::Clock;
use super::memory::{self, Memory, u32_at, u64_at};
use super::process::{Process, Stream};
use crate::guest::Guest;
use std::thread;
use std::time::Duration;

const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: u32 = 32;

/// An event that the guest waits for.
struct Subscription {
    /// The guest's own value, returned with the event.
    userdata: u64,
    kind: u8,
    state: State,
}

/// When a subscription is ready, and with what.
#[derive(Clone, Copy)]
enum State {
    /// After this time.
    Due(Duration),
    /// Now, with this many bytes.
    Ready(u64),
    /// Now, with an error.
    Refused(Errno),
}

/// The guest's arguments; all but the count are pointers into its memory.
pub(super) struct PollRequest {
    /// The subscriptions.
    pub(super) subscriptions: u32,
    /// Where the events go; there is room for one per subscription.
    pub(super) events: u32,
    /// The number of subscriptions.
    pub(super) count: u32,
    /// Where the number of events goes.
    pub(super) result: u32,
}

/// Waits until one subscription is ready, and reports all that are ready by then.
///
/// A guest that sleeps keeps its thread. It sleeps no longer than its call may take.
pub(super) fn poll(
    guest: &Guest<Process>,
    memory: &mut Memory<'_>,
    request: &PollRequest,
) -> Result<(), Refused> {
    let count = request.count;
    if count == 0 {
        return Err(Errno::Invalid.into());
    }
    let places = memory::places(request.subscriptions, count, SUBSCRIPTION_BYTES)?;
    let subscriptions: Vec<Subscription> = places
        .map(|place| Subscription::read(&guest.state, &memory.load(place?)?))
        .collect::<Result<_, _>>()?;
    let waited = subscriptions
        .iter()
        .map(|subscription| subscription.state.due())
        .min()
        .unwrap_or_default();
    wait(guest, waited)?;
    let told = subscriptions
        .iter()
        .filter(|subscription| subscription.state.due() <= waited);
    let mut told_count = 0;
    for (subscription, place) in told.zip(memory::places(request.events, count, EVENT_BYTES)?) {
        memory.store(place?, subscription.event())?;
        told_count += 1;
    }
    Ok(memory.store_length(request.result, told_count)?)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the guest asks to sleep, on its own thread; there is no event to await"
)]
fn wait(guest: &Guest<Process>, time: Duration) -> Result<(), Refused> {
    if !time.is_zero() {
        thread::sleep(time.min(guest.deadline.remaining()));
    }
    Ok(guest.deadline.check()?)
}

impl Subscription {
    fn read(process: &Process, record: &[u8; 48]) -> Result<Self, Errno> {
        let kind = record[8];
        let state = match kind {
            0 => clock(process, record),
            1 | 2 => stream(process, u32_at(record, 16), kind),
            _ => return Err(Errno::Invalid),
        };
        Ok(Self {
            userdata: u64_at(record, 0),
            kind,
            state: state.unwrap_or_else(State::Refused),
        })
    }

    fn event(&self) -> [u8; 32] {
        let (errno, bytes) = match self.state {
            State::Due(_) => (Errno::Success, 0),
            State::Ready(bytes) => (Errno::Success, bytes),
            State::Refused(errno) => (errno, 0),
        };
        let mut event = [0; 32];
        event[..8].copy_from_slice(&self.userdata.to_le_bytes());
        event[8..10].copy_from_slice(&errno.number().to_le_bytes());
        event[10] = self.kind;
        event[16..24].copy_from_slice(&bytes.to_le_bytes());
        event
    }
}

impl State {
    fn due(self) -> Duration {
        match self {
            Self::Due(due) => due,
            Self::Ready(_) | Self::Refused(_) => Duration::ZERO,
        }
    }
}

/// An absolute or relative time of a clock.
fn clock(process: &Process, record: &[u8]) -> Result<State, Errno> {
    let clock = Clock::new(u32_at(record, 16))?;
    let timeout = Duration::from_nanos(u64_at(record, 24));
    let is_absolute = u32_at(record, 40) & 1 == 1;
    Ok(State::Due(if is_absolute {
        timeout.saturating_sub(clock.now(process))
    } else {
        timeout
    }))
}

/// Reading is possible from stdin, writing to the other two.
fn stream(process: &Process, descriptor: u32, kind: u8) -> Result<State, Errno> {
    let bytes = match (process.stream(descriptor)?, kind) {
        (Stream::Stdin, 1) => u64::try_from(process.unread().len()).unwrap_or(u64::MAX),
        (Stream::Stdout | Stream::Stderr, 2) => 0,
        (Stream::Stdin | Stream::Stdout | Stream::Stderr, _) => return Err(Errno::BadDescriptor),
    };
    Ok(State::Ready(bytes))
}
