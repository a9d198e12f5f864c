//! The batcher: packs queued commands into entries and returns the results to their callers.
//!
//! Each entry costs a round of messages, an fsync on every member and a write of its state,
//! whatever it holds. So while one is in flight, the next one gathers new commands, and after it
//! the follow-ups to its results ([`Rounds`]): on an idle cluster nothing waits, and under load
//! entries grow with the queue instead of in number.

use crate::batch::OFFERS_BYTES_MAX;
use crate::batch::queue::{Queue, Submission, SubmissionResult};
use crate::batch::rounds::Rounds;
use crate::clock::StampClock;
use crate::cluster::leadership::Leadership;
use crate::environment::OfferSource;
use crate::membership::{StoredMembership, voters};
use crate::proposal::{Commands, Proposal, encoded_bytes, slots};
use crate::raft::type_config::{ConsensusHandle, TypeConfig};
use flotilla_engine::limits::ENTRY_OFFERS_MAX;
use flotilla_engine::{CommandEnvelope, Entry, NodeId, Offer, Stamp};
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
    pub(crate) rounds: Arc<Rounds>,
}

type Responder = ProgressResponder<TypeConfig, ClientWriteResult<TypeConfig>>;
type Senders = Vec<oneshot::Sender<SubmissionResult>>;

impl Batcher {
    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let in_flight = Arc::new(Semaphore::new(self.entries_in_flight));
        loop {
            self.queue.wait().await;
            self.rounds.gather(&self.queue).await;
            // While no entry may start, more commands gather for the next one. A replaced leader
            // may wait for long: its entries end only when the new leader contacts it.
            let permit = tokio::select! {
                permit = Arc::clone(&in_flight).acquire_owned() => permit.ok(),
                _ = self.leadership.wait_for(|leadership| !leadership.is_self) => None,
            };
            let taken = self.queue.take_entry();
            match permit {
                Some(permit) if !taken.is_empty() => self.propose(taken, permit).await,
                Some(_) => {}
                None => refuse(taken.into_iter().map(|submission| submission.result_sender)),
            }
        }
    }

    async fn propose(&self, taken: Vec<Submission>, permit: OwnedSemaphorePermit) {
        let (commands, senders): (Vec<_>, Senders) = taken
            .into_iter()
            .map(|submission| (submission.envelope, submission.result_sender))
            .unzip();
        if !self.raft.is_leader() {
            refuse(senders);
            return;
        }
        self.counters.entries.fetch_add(1, Ordering::Relaxed);
        self.counters
            .commands
            .fetch_add(commands.len() as u64, Ordering::Relaxed);
        let round = Rounds::begin(&self.rounds, commands.len());
        let entry = self.entry(commands);
        let offered = slots(&entry.offers);
        let proposal = Proposal::Commands(Commands::new(entry));
        let (responder, receiver) = Responder::complete_only();
        if self
            .raft
            .client_write_ff(proposal, Some(responder))
            .await
            .is_err()
        {
            // openraft has ended; it is unknown whether it took the entry.
            return;
        }
        let offers = Arc::clone(&self.offers);
        tokio::spawn(async move {
            let result = receiver.await.ok();
            drop((permit, round));
            if let Some(Err(ClientWriteError::ForwardToLeader(_))) = result {
                // openraft returns this only before it has appended the entry. The term may continue: a leader whose
                // successor does not take over refuses for a while.
                offers.return_offers(&offered);
                return refuse(senders);
            }
            deliver_results(senders, result);
        });
    }

    fn entry(&self, commands: Vec<CommandEnvelope>) -> Entry {
        let mut offers = self.offers.take(commands.len(), OFFERS_BYTES_MAX);
        let excess = offers.split_off(fitting(&offers, OFFERS_BYTES_MAX));
        if !excess.is_empty() {
            self.offers.return_offers(&slots(&excess));
        }
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

/// How many of the offers fit into an entry. A source keeps to its limits; one that does not must
/// not end replication.
fn fitting(offers: &[Offer], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fit = offers.iter().take_while(|offer| {
        bytes += encoded_bytes(*offer);
        bytes <= bytes_max
    });
    fit.take(ENTRY_OFFERS_MAX).count()
}

fn refuse(senders: impl IntoIterator<Item = oneshot::Sender<SubmissionResult>>) {
    for sender in senders {
        // A caller that is gone does not need the result.
        drop(sender.send(SubmissionResult::NotLeader));
    }
}

/// Returns the results to the callers; a caller whose sender is dropped takes the outcome as
/// unknown.
fn deliver_results(senders: Senders, result: Option<ClientWriteResult<TypeConfig>>) {
    match result {
        Some(Ok(response)) => {
            let replies = response.data.replies;
            assert_eq!(
                replies.len(),
                senders.len(),
                "the engine answers every command"
            );
            for (sender, reply) in senders.into_iter().zip(replies) {
                drop(sender.send(SubmissionResult::Done(reply)));
            }
        }
        Some(Err(_)) | None => {
            for sender in senders {
                drop(sender.send(SubmissionResult::Unknown));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
    use std::collections::BTreeMap;

    fn offer(actions_count: usize) -> Offer {
        let action = ActionName::new("a".repeat(200)).unwrap();
        Offer {
            namespace: Namespace::default_namespace(),
            worker: WorkerId::new("w").unwrap(),
            poll: 1,
            actions: vec![action; actions_count],
            labels: BTreeMap::new(),
            slots: 1,
        }
    }

    #[test]
    fn offers_over_the_bytes_or_the_count_of_an_entry_are_left_out() {
        let offers = vec![offer(1_000); 100];
        let bytes = encoded_bytes(&offers[0]);
        assert!(bytes > 200_000);
        assert_eq!(fitting(&offers, 3 * bytes), 3);
        assert_eq!(fitting(&offers, 4 * bytes - 1), 3);
        assert_eq!(fitting(&offers, bytes - 1), 0);
        let small = vec![offer(1); ENTRY_OFFERS_MAX + 1];
        assert_eq!(fitting(&small, OFFERS_BYTES_MAX), ENTRY_OFFERS_MAX);
    }

    #[test]
    fn a_full_entry_with_all_the_offers_that_it_may_hold_fits_into_a_message() {
        let mut offers = vec![offer(1_000); ENTRY_OFFERS_MAX];
        offers.truncate(fitting(&offers, OFFERS_BYTES_MAX));
        let mut command = crate::testing::command(flotilla_engine::Admission::Intake);
        if let flotilla_engine::Body::InvokeAction(invoke) = &mut command.body {
            let room = flotilla_engine::limits::ENTRY_BYTES_MAX - 1_000;
            invoke.labels.insert("k".repeat(room), String::new());
        }
        let stamp = Stamp {
            now_ms: u64::MAX,
            seed: u64::MAX,
            node: NodeId(u64::MAX),
        };
        let commands = vec![command.by_anyone()];
        let entry = Entry {
            stamp,
            offers,
            commands,
        };
        let bytes = Commands::new(entry).bytes().len();
        assert!(bytes > flotilla_engine::limits::ENTRY_BYTES_MAX);
        assert!(bytes < crate::network::client::MESSAGE_BYTES_MAX);
    }
}
