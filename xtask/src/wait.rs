//! Waits for what other processes do.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::interrupt::Interrupt;

/// The interval between probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// Probes until there is a result.
///
/// # Errors
/// What the probe returns, since it fails only if waiting does not help; if there is no
/// result within the limit; if the work is interrupted.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    interrupt: &Interrupt,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        interrupt.check()?;
        if let Some(answer) = probe()? {
            return Ok(answer);
        }
        if began.elapsed() > limit {
            bail!("expected {what} within {limit:?}, but it did not happen");
        }
        pause();
    }
}

/// Waits for a fixed time, for work that needs time itself, and returns how long it was.
///
/// # Errors
/// If the work is interrupted.
pub(crate) fn let_pass(time: Duration, interrupt: &Interrupt) -> Result<Duration> {
    let began = Instant::now();
    while began.elapsed() < time {
        interrupt.check()?;
        pause();
    }
    Ok(began.elapsed())
}

/// Waits between two probes.
#[allow(
    clippy::disallowed_methods,
    reason = "another process must be polled; it cannot wake us"
)]
pub(crate) fn pause() {
    thread::sleep(PROBE_INTERVAL);
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn it_probes_until_there_is_an_answer() {
        let interrupt = Interrupt::never();
        let mut answers = vec![Some(7), None, None];
        let probe = || Ok(answers.pop().flatten());
        assert_eq!(wait_for("a number", LONG, &interrupt, probe).unwrap(), 7);
    }

    #[test]
    fn patience_has_an_end() {
        let interrupt = Interrupt::never();
        let never = || Ok(None::<()>);
        let error = wait_for("a leader", Duration::ZERO, &interrupt, never).unwrap_err();
        assert!(error.to_string().contains("a leader"), "{error}");
    }

    #[test]
    fn the_time_that_has_passed_is_returned() {
        let time = Duration::from_millis(1);
        assert!(let_pass(time, &Interrupt::never()).unwrap() >= time);
    }

    #[test]
    fn a_permanent_failure_ends_the_wait() {
        let interrupt = Interrupt::never();
        let broken = || Err::<Option<()>, _>(anyhow!("node 2 is gone"));
        let error = wait_for("node 2", LONG, &interrupt, broken).unwrap_err();
        assert_eq!(error.to_string(), "node 2 is gone");
    }
}
