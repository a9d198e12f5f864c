//! A worker's poll at the leader, from its hello on.

use crate::error::Error;
use crate::hub::{Hub, OpenPoll, PollClosed, Request, ToWorker};
use crate::poller::{LeasedTask, Poller, Standing};
use flotilla_engine::ids::ActionRunNumber;
use flotilla_replica::Replica;
use std::collections::VecDeque;
use std::sync::Arc;

/// A worker's poll: first come the tasks that are leased to it and that it does not hold, then those that entries
/// assign to it.
pub struct Session {
    replica: Replica,
    poller: Poller,
    poll: OpenPoll,
    /// The worker's leases that were not compared with what it holds yet.
    leases: VecDeque<ActionRunNumber>,
    /// The worker's slots, if they came before its leased tasks were delivered again: those take slots too.
    slots: Option<u64>,
}

impl Session {
    /// Opens the poll of a worker; closes an older one.
    ///
    /// # Errors
    /// [`Error::PollClosed`] if this node does not lead; [`Error::Rejected`] if the worker is not registered, or by
    /// another process; [`Error::Read`].
    pub fn open(
        hub: &Arc<Hub>,
        replica: &Replica,
        mut poller: Poller,
        request: Request,
    ) -> Result<Self, Error> {
        let poll = hub.open(request)?;
        let Standing {
            is_draining,
            leases,
        } = poller.standing(replica)?;
        poller.forget_tokens(&leases);
        // It may have begun to drain between the poll's request and its opening.
        poll.set_draining(is_draining);
        Ok(Self {
            replica: replica.clone(),
            poller,
            poll,
            leases: leases.into(),
            slots: None,
        })
    }

    /// Who polls.
    #[must_use]
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Whether the worker drains, as far as the hub knows.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.poll.is_draining()
    }

    /// Whether the worker may have to know of a leased task.
    #[must_use]
    pub fn has_leased(&self) -> bool {
        !self.leases.is_empty()
    }

    /// The next leased task that the worker must know of; `None` once it knows all of them. From then on its slots
    /// count.
    ///
    /// # Errors
    /// [`Error::PollClosed`] if the poll is no longer open; as [`Session::open`].
    pub fn next_leased(&mut self) -> Result<Option<LeasedTask>, Error> {
        while let Some(task) = self.leases.pop_front() {
            if let Some(leased) = self.poller.leased(&self.replica, task)? {
                if leased.missing.is_some() {
                    self.poll.count_task();
                }
                return Ok(Some(leased));
            }
        }
        match self.slots.take() {
            Some(max_tasks_total) => self.count_slots(max_tasks_total).map(|()| None),
            None => Ok(None),
        }
    }

    /// Sets the running total of tasks that the worker takes. It counts once [`Session::next_leased`] finds none.
    pub fn set_total(&mut self, max_tasks_total: u64) {
        self.slots = Some(max_tasks_total);
    }

    fn count_slots(&self, max_tasks_total: u64) -> Result<(), Error> {
        if self.poll.is_draining() {
            // It may have registered again, which ends its drain (A20).
            let standing = self.poller.standing(&self.replica)?;
            self.poll.set_draining(standing.is_draining);
        }
        Ok(self.poll.set_total(max_tasks_total)?)
    }

    /// The next message; `None` once the poll is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<ToWorker> {
        self.poll.next().await
    }

    /// The next message, if there is one already.
    pub fn next_ready(&mut self) -> Option<ToWorker> {
        self.poll.next_ready()
    }

    /// Waits until the poll is closed, even if messages are left.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.poll.closed()
    }

    /// Uncounts a task that came with an entry and is not sent.
    pub fn discount_task(&self) {
        self.poll.discount_task();
    }

    /// Why the poll is no longer open.
    #[must_use]
    pub fn why_closed(&self) -> PollClosed {
        self.poll.why_closed()
    }
}
