//! Being asked to stop while processes of ours are running.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether somebody pressed Ctrl-C, closed the terminal or sent SIGTERM.
///
/// A flag that the work looks at, and not a handler that ends the process: so there is one way out,
/// on which every process is ended and every file removed.
pub(crate) struct Interrupt {
    is_raised: Arc<AtomicBool>,
}

/// The work was given up because somebody asked for it.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted, and cleaned up")
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    /// From now on the signals raise the flag instead of ending the process.
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

    /// One that nobody raises: the signals keep their meaning.
    pub(crate) fn never() -> Self {
        Self {
            is_raised: Arc::default(),
        }
    }

    /// # Errors
    /// [`Interrupted`] once a signal came.
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
