//! A worker that opens a poll, compared with the registry and with its leases (A4, A20).

use crate::error::Error;
use crate::hub::{Request, Revocation, WorkerKey};
use crate::limits::HELLO_TOKENS_PER_TASK_MAX;
use flotilla_engine::ids::{ActionName, ActionRunNumber};
use flotilla_engine::json::Json;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, WorkerView};
use flotilla_engine::{Assignment, Rejection, TaskToken};
use flotilla_replica::Replica;
use std::collections::{BTreeMap, BTreeSet};

/// A worker that opens a poll: what its hello says.
#[derive(Clone, Debug)]
pub struct Poller {
    /// Its namespace and id.
    pub key: WorkerKey,
    /// The number of its process.
    pub incarnation: u64,
    /// The actions that it takes.
    pub actions: BTreeSet<ActionName>,
    /// The tasks that it holds.
    pub held: BTreeSet<TaskToken>,
}

/// A worker's leases and settings once its poll is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether it drains: it gets no tasks (A21).
    pub(crate) is_draining: bool,
    /// The tasks that are leased to it.
    pub(crate) leases: Vec<ActionRunNumber>,
}

/// A task that is leased to the worker.
#[derive(Clone, Debug)]
pub struct LeasedTask {
    /// The task and its input, if the worker does not hold it: it is delivered again.
    pub missing: Option<(Assignment, Json)>,
    /// Present if the task is cancelled.
    pub cancelled: Option<Revocation>,
}

impl Poller {
    /// The poll's request, from the hello and the registry.
    ///
    /// # Errors
    /// [`Error::Rejected`] if the worker is not registered, or by another process; [`Error::Read`].
    pub fn request(&self, replica: &Replica) -> Result<Request, Error> {
        let known = read(replica, |reader| self.look_up(reader))?;
        let WorkerView {
            record, activity, ..
        } = self.check_registered(known)?;
        Ok(Request {
            key: self.key.clone(),
            actions: self.actions.iter().cloned().collect(),
            labels: record.labels,
            concurrency: record.max_concurrency,
            is_draining: activity.status.is_draining(),
            is_embedded: record.node.is_some(),
        })
    }

    /// The worker's standing. Must be read once the poll is open: a task that is assigned in between is then among the
    /// leases or delivered, and a worker ignores a duplicate.
    pub(crate) fn standing(&self, replica: &Replica) -> Result<Standing, Error> {
        let found = read(replica, |reader| {
            let Some(known) = self.look_up(reader)? else {
                return Ok(None);
            };
            let leases = view::leased_tasks(reader, &known)?;
            Ok(Some((known, leases)))
        })?;
        let (known, leases) = found.unzip();
        let activity = self.check_registered(known)?.activity;
        Ok(Standing {
            is_draining: activity.status.is_draining(),
            leases: leases.unwrap_or_default(),
        })
    }

    /// Forgets the tokens of tasks that are not leased to the worker, and keeps at most [`HELLO_TOKENS_PER_TASK_MAX`] for each
    /// leased task, because a hello may name any.
    pub(crate) fn forget_tokens(&mut self, leases: &[ActionRunNumber]) {
        let tasks = leases.iter().map(|task| (*task, HELLO_TOKENS_PER_TASK_MAX));
        let mut left: BTreeMap<_, _> = tasks.collect();
        self.held
            .retain(|token| match left.get_mut(&token.action_run) {
                Some(0) | None => false,
                Some(left) => {
                    *left -= 1;
                    true
                }
            });
    }

    /// What the worker has to know about a task; `None` if it is no longer leased to the worker (A4).
    pub(crate) fn leased(
        &self,
        replica: &Replica,
        task: ActionRunNumber,
    ) -> Result<Option<LeasedTask>, Error> {
        let leased = read(replica, |reader| {
            // In one view: the lease may end and the task go to another worker at any time.
            let known = self.look_up(reader)?;
            let known = known.filter(|known| known.record.incarnation == self.incarnation);
            match known {
                Some(known) if view::is_leased(reader, &known, task)? => {
                    view::assignment(reader, task)
                }
                Some(_) | None => Ok(None),
            }
        })?;
        Ok(leased.map(|(assignment, input)| {
            let token = assignment.token;
            let cancelled = assignment.is_cancelled.then_some(Revocation {
                token,
                is_answer_awaited: true,
            });
            let is_missing = !self.held.contains(&token);
            LeasedTask {
                missing: is_missing.then_some((assignment, input)),
                cancelled,
            }
        }))
    }

    /// Refuses a worker that is not registered, or registered by another process.
    fn check_registered(&self, known: Option<WorkerView>) -> Result<WorkerView, Error> {
        let worker = &self.key.worker;
        let known = known.ok_or_else(|| Rejection::WorkerNotFound(worker.clone()))?;
        if known.record.incarnation != self.incarnation {
            return Err(Rejection::WorkerReplaced(worker.clone()).into());
        }
        Ok(known)
    }

    fn look_up(&self, reader: &dyn Reader) -> Result<Option<WorkerView>, StoreError> {
        view::worker(reader, &self.key.namespace, &self.key.worker)
    }
}

/// Reads a few rows of the node's applied state.
pub(crate) fn read<T>(
    replica: &Replica,
    read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>,
) -> Result<T, Error> {
    Ok(replica.view(|view| read(view))??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Hub;
    use crate::testing::StillNode;
    use flotilla_engine::ids::{Namespace, WorkerId};
    use flotilla_engine::{Body, DrainWorker, RegisterWorker, WorkerType};
    use flotilla_replica::OfferSource;
    use std::sync::Arc;

    #[test]
    fn a_hello_may_name_any_tasks_but_few_tokens_are_kept() {
        let token = |action_run, secret| TaskToken {
            action_run: ActionRunNumber(action_run),
            attempt: 1,
            secret,
        };
        let tokens = (0..100).map(|secret| token(secret % 10, secret));
        let mut poller = Poller {
            key: WorkerKey {
                namespace: Namespace::default_namespace(),
                worker: WorkerId::new("w").unwrap(),
            },
            incarnation: 0,
            actions: BTreeSet::new(),
            held: tokens.chain([token(11, 7)]).collect(),
        };
        poller.forget_tokens(&[ActionRunNumber(3), ActionRunNumber(11), ActionRunNumber(12)]);
        let kept: Vec<_> = poller
            .held
            .into_iter()
            .map(|token| token.action_run.0)
            .collect();
        assert_eq!(kept, [3, 3, 3, 3, 11]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_worker_that_begins_to_drain_before_its_poll_is_open_is_found_to_drain() {
        let node = StillNode::start().await;
        let worker_id = WorkerId::new("w").unwrap();
        let registration = RegisterWorker {
            worker_id: worker_id.clone(),
            incarnation: 0,
            kind: WorkerType::Action,
            max_concurrency: 1,
            processes: Vec::new(),
            labels: BTreeMap::new(),
            metadata: None,
            machine_id: None,
            node: None,
        };
        let register = Body::RegisterWorker(Box::new(registration));
        node.submit(register).await;
        let hub = Arc::new(Hub::default());
        hub.begin_term();
        let poller = Poller {
            key: WorkerKey {
                namespace: Namespace::default_namespace(),
                worker: worker_id.clone(),
            },
            incarnation: 0,
            actions: BTreeSet::from([ActionName::new("charge").unwrap()]),
            held: BTreeSet::new(),
        };
        let request = poller.request(&node.replica).unwrap();
        assert!(!request.is_draining);
        let drain = DrainWorker {
            worker_id,
            incarnation: None,
        };
        node.submit(Body::DrainWorker(drain)).await;
        let poll = hub.open(request).unwrap();
        poll.set_total(1).unwrap();
        let standing = poller.standing(&node.replica).unwrap();
        assert!(standing.is_draining);
        poll.set_draining(standing.is_draining);
        assert_eq!(hub.take(1, usize::MAX), []);
    }
}
