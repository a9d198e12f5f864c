//! Packs what waits into entries and hands the answers back.

use crate::batch::queue::{Answer, Queue, Submission};
use crate::clock::StampClock;
use crate::cluster::leadership::Leadership;
use crate::hooks::OfferSource;
use crate::membership::{StoredMembership, voters};
use crate::proposal::{Commands, Proposal};
use crate::raft::type_config::{ConsensusHandle, TypeConfig};
use flotilla_engine::limits::ENTRY_OFFERS_MAX;
use flotilla_engine::{Command, Entry, NodeId, Stamp};
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// How much was proposed since the start.
#[derive(Debug, Default)]
pub(crate) struct BatchCounters {
    pub(crate) entries: AtomicU64,
    pub(crate) commands: AtomicU64,
}

/// What the batcher works with.
pub(crate) struct Batcher {
    pub(crate) node_id: u64,
    pub(crate) raft: ConsensusHandle,
    pub(crate) queue: Arc<Queue>,
    pub(crate) clock: Arc<StampClock>,
    pub(crate) offers: Arc<dyn OfferSource>,
    pub(crate) membership: watch::Receiver<Arc<StoredMembership>>,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) counters: Arc<BatchCounters>,
    pub(crate) entries_in_flight: usize,
}

type Responder = ProgressResponder<TypeConfig, ClientWriteResult<TypeConfig>>;
type Senders = Vec<oneshot::Sender<Answer>>;

impl Batcher {
    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let in_flight = Arc::new(Semaphore::new(self.entries_in_flight));
        loop {
            self.queue.wait().await;
            // While no entry may start, more commands gather for the next one. A leader that was
            // replaced may wait for long: its entries end only once it hears from the new one.
            let permit = tokio::select! {
                permit = Arc::clone(&in_flight).acquire_owned() => permit.ok(),
                _ = self.leadership.wait_for(|leadership| !leadership.is_self) => None,
            };
            let taken = self.queue.take_entry();
            match permit {
                Some(permit) if !taken.is_empty() => self.propose(taken, permit).await,
                Some(_) => {}
                None => refuse(taken.into_iter().map(|submission| submission.answer)),
            }
        }
    }

    async fn propose(&self, taken: Vec<Submission>, permit: OwnedSemaphorePermit) {
        let (commands, senders): (Vec<_>, Senders) = taken
            .into_iter()
            .map(|submission| (submission.command, submission.answer))
            .unzip();
        if !self.raft.is_leader() {
            refuse(senders);
            return;
        }
        self.counters.entries.fetch_add(1, Ordering::Relaxed);
        self.counters
            .commands
            .fetch_add(commands.len() as u64, Ordering::Relaxed);
        let proposal = Proposal::Commands(Commands::new(self.entry(commands)));
        let (responder, receiver) = Responder::complete_only();
        if self
            .raft
            .client_write_ff(proposal, Some(responder))
            .await
            .is_err()
        {
            // openraft has ended; whether it took the entry is not known.
            return;
        }
        tokio::spawn(async move {
            let result = receiver.await;
            drop(permit);
            answer(senders, result.ok());
        });
    }

    fn entry(&self, commands: Vec<Command>) -> Entry {
        let mut offers = self.offers.take();
        offers.truncate(ENTRY_OFFERS_MAX);
        let membership = Arc::clone(&self.membership.borrow());
        let now_ms = self.clock.next(voters(membership.membership()));
        let stamp = Stamp {
            now_ms,
            seed: rand::random(),
            node: NodeId(self.node_id),
        };
        Entry {
            stamp,
            offers,
            commands,
        }
    }
}

fn refuse(senders: impl IntoIterator<Item = oneshot::Sender<Answer>>) {
    for sender in senders {
        // A caller that went away no longer wants to know.
        drop(sender.send(Answer::NotLeader));
    }
}

/// Hands the answers to the callers; who finds the sender dropped takes it as unknown.
fn answer(senders: Senders, result: Option<ClientWriteResult<TypeConfig>>) {
    match result {
        Some(Ok(response)) => {
            let replies = response.data.replies;
            assert_eq!(
                replies.len(),
                senders.len(),
                "the engine answers every command"
            );
            for (sender, reply) in senders.into_iter().zip(replies) {
                drop(sender.send(Answer::Done(reply)));
            }
        }
        // openraft says this only before it has appended the entry.
        Some(Err(ClientWriteError::ForwardToLeader(_))) => refuse(senders),
        Some(Err(_)) | None => {
            for sender in senders {
                drop(sender.send(Answer::Unknown));
            }
        }
    }
}
