//! Being asked to stop.

use crate::code::Code;
use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Catches SIGTERM and SIGINT from its creation on, so that none is lost while a server starts.
#[derive(Debug)]
pub(crate) struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    /// Begins to catch the signals.
    ///
    /// # Errors
    /// When the system refuses it.
    pub(crate) fn new() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(
                    Code::Signal,
                    format!("expected to catch signals, but {error}"),
                )
            })
        };
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next of them.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
