//! Deadlines of reads and writes.

use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// A deadline at which a read or write that waits fails.
pub(super) struct IoDeadline {
    sleep: Pin<Box<Sleep>>,
    /// What the error says.
    message: &'static str,
}

impl IoDeadline {
    /// A deadline after this time.
    pub(super) fn after(time: Duration, message: &'static str) -> Self {
        Self {
            sleep: Box::pin(sleep(time)),
            message,
        }
    }

    /// Fails at the deadline, at which the reader or writer is woken.
    pub(super) fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.sleep.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, self.message))
    }
}
