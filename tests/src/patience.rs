//! Waiting for something that has to be asked for.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: far more than it does take, also on a loaded
/// machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until the answer is there, and returns it. `ask` says in its error what it saw instead.
///
/// # Panics
/// When the answer is not there after `patience`.
pub fn wait_until<T>(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> Result<T, String>,
) -> T {
    let started = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(seen) => assert!(
                started.elapsed() < patience,
                "expected {what} within {patience:?}, but {seen}"
            ),
        }
        pause();
    }
}

/// Lets the others go on before the next question.
#[allow(
    clippy::disallowed_methods,
    reason = "another process can only be asked again"
)]
pub(crate) fn pause() {
    thread::sleep(PAUSE);
}
