//! The ticker: the clock that ends calls that run too long.
//!
//! Compiled code compares the engine's epoch with its deadline at each loop and function entry.
//! That is far cheaper than counting instructions, and it measures what a timeout means: elapsed
//! time, not work done.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use wasmtime::Engine;

/// The length of an epoch, and so the precision of a timeout. In milliseconds.
const TICK_MS: u64 = 10;

/// Advances an engine's epoch while it lives.
pub(crate) struct Ticker {
    /// Dropping it wakes and ends the thread. Both are present until the drop.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: Engine) -> io::Result<Self> {
        let (stop, stopped) = mpsc::sync_channel(0);
        let thread = Builder::new()
            .name("wasm-ticker".to_owned())
            .spawn(move || tick(&engine, &stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by its hook, and a drop must not panic.
            let _ = thread.join();
        }
    }
}

/// The number of epochs in a time, rounded up.
pub(crate) fn ticks_in(timeout_ms: u64) -> u64 {
    // One more, because the epoch in which a call begins is partly over.
    timeout_ms.div_ceil(TICK_MS) + 1
}

/// Advances epochs by the clock and not by wake-ups, so that a busy machine does not extend
/// timeouts.
fn tick(engine: &Engine, stopped: &Receiver<()>) {
    let started = Instant::now();
    let mut ticks = 0;
    while stopped.recv_timeout(Duration::from_millis(TICK_MS)) == Err(RecvTimeoutError::Timeout) {
        let due = started.elapsed().as_millis() / u128::from(TICK_MS);
        while ticks < due {
            engine.increment_epoch();
            ticks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ticks_in;

    #[test]
    fn a_deadline_is_never_early_and_never_overflows() {
        assert_eq!(ticks_in(1), 2);
        assert_eq!(ticks_in(10), 2);
        assert_eq!(ticks_in(11), 3);
        assert!(ticks_in(u64::MAX) < u64::MAX / 2);
    }
}
