//! The leader's drivers: loops that submit what is due by time or by state (design rule 6).
//!
//! Each node has a pump, which follows the applied entries, feeds the open polls and wakes the
//! drivers. The drivers run only while the node leads. Effects and deadlines wake them; they do not
//! poll. They act on what they read from the tables, so a new leader finds all of it there.

mod alarm;
mod backoff;
mod checks;
mod deferred;
mod dispatch;
mod health;
mod pump;
mod retention;
mod schedules;
mod sweep;
mod term;
mod timers;
mod triggers;
mod wakeups;

pub(crate) use pump::start;

use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::OBLIGATION_DEADLINE;
use crate::workers::Hub;
use backoff::Backoff;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Command, Operation};
use futures::future::join_all;
use std::sync::Arc;
use tokio::time::Instant;
use wakeups::Wakeups;

/// What every driver works with.
#[derive(Clone)]
struct Driver {
    context: Arc<Context>,
    hub: Arc<Hub>,
    wakeups: Arc<Wakeups>,
}

impl Driver {
    /// A driver for tests, which do what the pump would do.
    #[cfg(test)]
    fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            hub: Arc::default(),
            wakeups: Arc::default(),
        }
    }

    /// Submits the command of one obligation.
    async fn submit<O: Operation>(&self, command: Command<O>) -> Result<O::Reply, Refusal> {
        let deadline = Instant::now() + OBLIGATION_DEADLINE;
        self.context.gateway.submit(command, deadline).await
    }

    /// Submits the commands of several obligations together, in few entries. An error if none was
    /// accepted, so that a cluster whose clock stands still is not flooded.
    async fn submit_all(&self, commands: impl IntoIterator<Item = Command>) -> Result<(), Refusal> {
        let submitted = commands.into_iter().map(|command| self.submit(command));
        let mut refused = None;
        let mut is_any_accepted = false;
        for result in join_all(submitted).await {
            match result {
                Ok(_) => is_any_accepted = true,
                // Usually a former leader has done it, the state has changed since it was read, or
                // it is due by this node's clock but not yet by the log's.
                Err(refusal) => {
                    tracing::debug!(%refusal, "a due command was rejected");
                    refused = Some(refusal);
                }
            }
        }
        match refused {
            Some(refusal) if !is_any_accepted => Err(refusal),
            Some(_) | None => Ok(()),
        }
    }

    /// Reads a few rows of this node's applied state, retrying until it succeeds.
    async fn read<T>(&self, mut read: impl FnMut(&dyn Reader) -> Result<T, StoreError>) -> T {
        let mut backoff = Backoff::default();
        loop {
            match self.context.gateway.read_here(&mut read) {
                Ok(found) => return found,
                Err(refusal) => {
                    tracing::warn!(%refusal, "the state could not be read");
                    backoff.wait().await;
                }
            }
        }
    }

    /// The time of this node's log clock, in milliseconds.
    fn now_ms(&self) -> u64 {
        self.context.gateway.replica().now_ms()
    }
}
