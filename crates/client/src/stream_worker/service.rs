//! The lifecycle of a stream worker: register, join, take records, drain, leave.

use super::builder::Setup;
use super::member::{Member, persist};
use super::record::HeldRecord;
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::ClientError;
use crate::worker::{Callbacks, Contact, announce_drain};
use flotilla_api::v1;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often a worker checks whether its stream has been created.
const STREAM_INTERVAL: Duration = Duration::from_millis(500);
/// The timeout of each of the last calls.
const FAREWELL: Duration = Duration::from_secs(5);

/// The lifecycle of a stream worker.
pub(super) struct Service {
    member: Arc<Member>,
    /// One permit for each handler that may run.
    slots: Arc<Semaphore>,
    /// Drops the running handlers.
    abandon: CancellationToken,
    /// The worker is drained from elsewhere.
    drained: CancellationToken,
}

/// Why no records can be taken for now.
enum Stopped {
    /// The stream does not exist.
    NoStream,
    /// The group or the consumer does not exist, or the call failed temporarily.
    Again(ClientError),
    /// The cluster refuses the worker permanently.
    Refused(ClientError),
}

impl Service {
    /// A worker that has not started yet.
    pub(super) fn new(client: Client, setup: Arc<Setup>) -> Self {
        let slots = usize::try_from(setup.concurrency).unwrap_or(usize::MAX);
        Self {
            member: Arc::new(Member::new(client, setup)),
            slots: Arc::new(Semaphore::new(slots)),
            abandon: CancellationToken::new(),
            drained: CancellationToken::new(),
        }
    }

    /// Runs until the worker is stopped, drained or refused.
    pub(super) async fn live(
        self,
        stop: &CancellationToken,
        mut callbacks: Callbacks,
    ) -> Result<(), ClientError> {
        let _abandoned_at_the_end = self.abandon.clone().drop_guard();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            registered = persist(|| self.member.register()) => registered?,
        }
        // A draining worker still sends heartbeats: it keeps its records until they are processed.
        tokio::select! {
            ended = self.work(stop, &mut callbacks) => ended?,
            refused = self.keep_alive() => return Err(refused),
        }
        self.member.leave(FAREWELL).await;
        Ok(())
    }

    /// Processes records until the worker is stopped or drained, then finishes those that it holds.
    async fn work(
        &self,
        stop: &CancellationToken,
        callbacks: &mut Callbacks,
    ) -> Result<(), ClientError> {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.drained.cancelled() => {}
            refused = self.consume(callbacks) => return Err(refused),
        }
        let records = self.load();
        tracing::info!(worker = self.member.setup.worker_id, records, "draining");
        callbacks.draining(usize::try_from(records).unwrap_or(usize::MAX));
        tokio::select! {
            biased;
            () = self.all_settled() => {}
            () = self.grace(stop) => {
                let records = self.load();
                tracing::warn!(records, "the records that the worker holds are returned");
                self.abandon.cancel();
            }
        }
        Ok(())
    }

    /// Sends heartbeats to the registry and the group; notices when the worker is drained from
    /// elsewhere.
    async fn keep_alive(&self) -> ClientError {
        let mut contact = Contact::new(self.member.setup.worker_id.clone());
        loop {
            sleep(self.member.setup.heartbeat_interval).await;
            match self.member.heartbeat(self.load()).await {
                Ok(v1::WorkerStatus::Draining) if !self.drained.is_cancelled() => {
                    self.drained.cancel();
                    // Without records it leaves immediately.
                    continue;
                }
                Ok(_) => contact.regain(),
                Err(error) if error.code() == "worker_not_found" => {
                    if let Err(refused) = persist(|| self.member.register()).await {
                        return refused;
                    }
                }
                Err(error) if error.is_passing() => contact.lose(&error),
                Err(error) => return error,
            }
            match self.member.join().await {
                Ok(_) => {}
                Err(error) if error.code() == "consumer_replaced" => return error,
                // The loop that takes records notices everything else that is wrong with the group.
                Err(error) => tracing::info!(%error, "a heartbeat of the consumer failed"),
            }
        }
    }

    /// The number of running handlers.
    fn load(&self) -> u32 {
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        self.member.setup.concurrency.saturating_sub(free)
    }

    /// Joins and takes records until the cluster refuses the worker.
    async fn consume(&self, callbacks: &mut Callbacks) -> ClientError {
        let mut backoff = Backoff::default();
        loop {
            let joined = self.member.join().await.map_err(Stopped::from);
            // A stream that is created later is read from its start: nothing is missed.
            if !matches!(joined, Err(Stopped::Again(_) | Stopped::Refused(_))) {
                callbacks.ready();
            }
            let stopped = match joined {
                Ok(joined) => self.take_all(&joined, &mut backoff).await,
                Err(stopped) => stopped,
            };
            match stopped {
                Stopped::NoStream => sleep(STREAM_INTERVAL).await,
                Stopped::Again(error) => {
                    tracing::info!(%error, "rejoining");
                    sleep(backoff.next_delay()).await;
                }
                Stopped::Refused(error) => return error,
            }
        }
    }

    /// Takes records whenever a handler may run, until a take fails.
    async fn take_all(&self, joined: &v1::JoinGroupResponse, backoff: &mut Backoff) -> Stopped {
        let ack_timeout = Duration::from_millis(joined.ack_timeout_ms);
        let keeps_order = joined.mode() != v1::GroupMode::Shared;
        // Kept until a response arrives, so that records of a lost response are delivered again.
        let mut take_id = rand::random();
        loop {
            let limit = self.room(keeps_order).await;
            let deliveries = match self.member.take(take_id, limit).await {
                Ok(deliveries) => deliveries,
                Err(error) if error.is_passing() => {
                    tracing::info!(%error, "retrying the take");
                    sleep(backoff.next_delay()).await;
                    continue;
                }
                Err(error) => return error.into(),
            };
            backoff.reset();
            for delivery in deliveries {
                let member = self.member.clone();
                self.start(HeldRecord::new(member, delivery, take_id, ack_timeout));
            }
            take_id = rand::random();
        }
    }

    /// Waits until records can be processed immediately; returns how many.
    async fn room(&self, keeps_order: bool) -> u32 {
        let setup = &self.member.setup;
        let needed = if keeps_order { setup.concurrency } else { 1 };
        let permits = self.slots.acquire_many(needed).await;
        drop(permits.expect("the slots are never closed"));
        if keeps_order {
            return 1;
        }
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        setup.batch_size.min(free)
    }

    fn start(&self, record: HeldRecord) {
        let slots = self.slots.clone();
        let abandoned = self.abandon.clone().cancelled_owned();
        let slot = slots
            .try_acquire_owned()
            .expect("no more records are taken than there are slots");
        tokio::spawn(async move {
            // Abandoned records are not settled: the group redelivers them when the worker leaves.
            tokio::select! {
                () = abandoned => {}
                () = record.process() => {}
            }
            drop(slot);
        });
    }

    /// Waits until no handler runs.
    async fn all_settled(&self) {
        let all = self.slots.acquire_many(self.member.setup.concurrency);
        drop(all.await.expect("the slots are never closed"));
    }

    /// Ends when the drain grace is over; never for a drain from elsewhere.
    async fn grace(&self, stop: &CancellationToken) {
        stop.cancelled().await;
        let over = sleep(self.member.setup.drain_grace);
        if self.load() > 0 && !self.drained.is_cancelled() {
            let Member {
                client,
                setup,
                incarnation,
                ..
            } = &*self.member;
            // The registry should show what the worker waits for.
            announce_drain(client.clone(), setup.worker_id.clone(), *incarnation).await;
        }
        over.await;
    }
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Self {
        match error.code() {
            "stream_not_found" => Self::NoStream,
            "group_not_found" | "consumer_not_found" => Self::Again(error),
            _ if error.is_passing() => Self::Again(error),
            _ => Self::Refused(error),
        }
    }
}
