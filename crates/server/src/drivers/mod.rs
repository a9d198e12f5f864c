//! What the leader does because time passes or state asks for it (design rule 6).
//!
//! A node's pump listens to what is applied: it feeds the open polls and wakes the drivers. The
//! drivers run only while the node leads. They are woken by effects and by the next deadline, not
//! by polling; what they act on is read from the tables, so a new leader finds all of it.

mod alarm;
mod aside;
mod backoff;
mod checks;
mod dispatch;
mod health;
mod pump;
mod retention;
mod schedules;
mod signals;
mod sweep;
mod term;
mod timers;
mod triggers;

pub(crate) use pump::start;

use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::OBLIGATION_DEADLINE;
use crate::workers::Hub;
use backoff::Backoff;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Command, Operation};
use futures::future::join_all;
use signals::Signals;
use std::sync::Arc;
use tokio::time::Instant;

/// What every driver works with.
#[derive(Clone)]
struct Driver {
    context: Arc<Context>,
    hub: Arc<Hub>,
    signals: Arc<Signals>,
}

impl Driver {
    /// That of a test, which does what the pump would do.
    #[cfg(test)]
    fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            hub: Arc::default(),
            signals: Arc::default(),
        }
    }

    /// Submits the command of one obligation.
    async fn submit<O: Operation>(&self, command: Command<O>) -> Result<O::Reply, Refusal> {
        let deadline = Instant::now() + OBLIGATION_DEADLINE;
        self.context.gateway.submit(command, deadline).await
    }

    /// Submits the commands of obligations together: they travel in few entries. An error when none
    /// was accepted, so that a cluster whose time stands still is not flooded.
    async fn submit_all(&self, commands: impl IntoIterator<Item = Command>) -> Result<(), Refusal> {
        let submitted = commands.into_iter().map(|command| self.submit(command));
        let mut refused = None;
        let mut is_any_accepted = false;
        for result in join_all(submitted).await {
            match result {
                Ok(_) => is_any_accepted = true,
                // Most often a leader before this one has met the obligation, the state has changed
                // since it was read, or it is due by this node's clock but not by the log's.
                Err(refusal) => {
                    tracing::debug!(%refusal, "an obligation was not met");
                    refused = Some(refusal);
                }
            }
        }
        match refused {
            Some(refusal) if !is_any_accepted => Err(refusal),
            Some(_) | None => Ok(()),
        }
    }

    /// Reads a few rows of what this node has applied, however often that takes.
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
