//! Handles requests to stop while child processes run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether the user pressed Ctrl-C or closed the terminal, or SIGTERM arrived.
///
/// The work polls this flag. A handler that ended the process would skip the cleanup: with the flag there is one way
/// out, which ends every process and removes every file.
pub(crate) struct Interrupt {
    is_raised: Arc<AtomicBool>,
}

/// The work was interrupted by a signal.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted, and cleaned up")
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    /// From now on the signals set the flag instead of ending the process.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn catch() -> Result<Self> {
        let is_raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, is_raised.clone())
                .context("expected to catch signals")?;
        }
        Ok(Self { is_raised })
    }

    /// A flag that no signal sets: the signals keep their default effect.
    pub(crate) fn never() -> Self {
        Self {
            is_raised: Arc::default(),
        }
    }

    /// # Errors
    /// [`Interrupted`] after a signal.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_raised.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_flag_ends_the_work() {
        let interrupt = Interrupt::never();
        interrupt.check().unwrap();
        interrupt.is_raised.store(true, Ordering::Relaxed);
        assert!(interrupt.check().unwrap_err().is::<Interrupted>());
    }
}
