//! Waits for something that must be polled.

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits before it fails: far longer than anything should take, even on a loaded
/// machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The interval between polls.
const PAUSE: Duration = Duration::from_millis(10);

/// Polls until there is a result, and returns it. The error of `ask` says what it saw instead.
///
/// # Panics
/// When there is no result after `limit`.
pub fn wait_until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(seen) => assert!(
                started.elapsed() < limit,
                "expected {what} within {limit:?}, but {seen}"
            ),
        }
        pause();
    }
}

/// Lets other threads run before the next poll.
#[allow(
    clippy::disallowed_methods,
    reason = "another process can only be polled"
)]
pub(crate) fn pause() {
    thread::sleep(PAUSE);
}
