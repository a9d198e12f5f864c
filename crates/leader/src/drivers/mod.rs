//! The leader's drivers: loops that submit what is due by time or by state (design rule 6).
//!
//! They run only while the node leads. Effects and deadlines wake them; they do not poll. They act on what they read
//! from the tables, so a new leader finds all of it there.

mod alarm;
mod backoff;
mod checks;
mod deferred;
mod dispatch;
mod formation;
mod health;
mod retention;
mod schedules;
mod sweep;
mod timers;
mod triggers;
mod wakeups;

pub(crate) use backoff::Backoff;
pub(crate) use formation::complete_formation;
pub(crate) use wakeups::Wakeups;

use crate::bug::PlantedBug;
use crate::context::Context;
use crate::error::Error;
use crate::hub::Hub;
use crate::limits::OBLIGATION_DEADLINE;
use crate::poller;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Actor, Command, Operation};
use flotilla_replica::JobKind;
use futures::future::join_all;
use std::sync::Arc;
use tokio::time::Instant;

/// Runs the drivers. They rebuild what they know from the state.
pub(crate) async fn run_all(driver: &Driver) {
    tokio::join!(
        timers::drive(driver),
        dispatch::drive(driver),
        checks::drive(driver),
        health::drive(driver),
        sweep::drive(driver),
        schedules::drive(driver),
        triggers::drive(driver),
        retention::drive(driver),
    );
}

/// What every driver works with.
#[derive(Clone)]
pub(crate) struct Driver {
    pub(crate) context: Arc<Context>,
    pub(crate) wakeups: Arc<Wakeups>,
}

impl Driver {
    /// A driver without wake-ups.
    pub(crate) fn new(context: Context) -> Self {
        Self {
            context: Arc::new(context),
            wakeups: Arc::default(),
        }
    }

    /// The open polls of workers.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.context.hub
    }

    /// Whether this bug is planted.
    pub(crate) fn has(&self, bug: PlantedBug) -> bool {
        self.context.hub.has(bug)
    }

    /// Submits the command of one obligation.
    pub(crate) async fn submit<O: Operation>(
        &self,
        command: Command<O>,
    ) -> Result<O::Reply, Error> {
        let envelope = command.untyped().by(Actor::System);
        let (kind, scope) = (envelope.command.body.kind(), envelope.command.scope.clone());
        let began = Instant::now();
        let submitted = self
            .context
            .replica
            .submit(envelope, began + OBLIGATION_DEADLINE)
            .await;
        let observer = &self.context.observer;
        observer.command_ended(kind, &scope, began.elapsed());
        Ok(O::Reply::try_from(submitted??).map_err(Into::into)?)
    }

    /// Submits the commands of several obligations together, in few entries. An error if none was
    /// accepted, so that a cluster whose clock stands still is not flooded.
    async fn submit_all<O: Operation>(
        &self,
        commands: impl IntoIterator<Item = Command<O>>,
    ) -> Result<(), Error> {
        let submitted = commands.into_iter().map(|command| self.submit(command));
        let mut failed = None;
        let mut is_any_accepted = false;
        for result in join_all(submitted).await {
            match result {
                Ok(_) => is_any_accepted = true,
                // Usually a former leader has done it, the state has changed since it was read, or
                // it is due by this node's clock but not yet by the log's.
                Err(error) => {
                    tracing::debug!(%error, "a due command was rejected");
                    failed = Some(error);
                }
            }
        }
        match failed {
            Some(error) if !is_any_accepted => Err(error),
            Some(_) | None => Ok(()),
        }
    }

    /// Reads a few rows of this node's applied state, retrying until it succeeds.
    async fn read<T>(&self, mut read: impl FnMut(&dyn Reader) -> Result<T, StoreError>) -> T {
        let mut backoff = Backoff::default();
        loop {
            match self.read_once(&mut read) {
                Ok(found) => return found,
                Err(error) => {
                    tracing::warn!(%error, "the state could not be read");
                    backoff.wait().await;
                }
            }
        }
    }

    /// Reads a few rows of this node's applied state.
    fn read_once<T>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>,
    ) -> Result<T, Error> {
        poller::read(&self.context.replica, read)
    }

    /// Runs a job that may take long.
    async fn run_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let pool = self.context.replica.blocking_pool();
        Ok(pool.run(JobKind::Query, job).await?)
    }

    /// The time of this node's log clock, in milliseconds.
    fn now_ms(&self) -> u64 {
        self.context.replica.now_ms()
    }
}
