//! Stop signals.

use crate::code::Code;
use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Catches SIGTERM and SIGINT from its creation on, so that no signal is lost while a server
/// starts.
#[derive(Debug)]
pub(crate) struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn new() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(
                    Code::SignalHandlerFailed,
                    format!("expected to catch signals, but {error}"),
                )
            })
        };
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
