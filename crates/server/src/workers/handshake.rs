//! The handshake of a poll: the worker's hello, checked against the registry.

use super::assignment::to_wire;
use super::poll::{Request, Revocation, WorkerKey};
use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::HELD_TASKS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, ActionRunNumber, WorkerId};
use flotilla_engine::limits::PROCESSES_MAX;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, WorkerView};
use flotilla_engine::{Rejection, TaskToken};
use std::collections::BTreeSet;

/// A well-formed hello.
pub(super) struct Handshake {
    key: WorkerKey,
    incarnation: u64,
    actions: BTreeSet<ActionName>,
    held: BTreeSet<TaskToken>,
    supports_batches: bool,
}

/// A worker's leases and settings once its poll is open.
pub(super) struct Standing {
    pub(super) is_draining: bool,
    /// The tasks that are leased to it.
    pub(super) leases: Vec<ActionRunNumber>,
}

/// A task that is leased to the worker.
pub(super) struct Leased {
    /// The task, if the worker does not hold it: it is delivered again.
    pub(super) missing: Option<v1::TaskAssignment>,
    /// Present if the task is cancelled.
    pub(super) cancelled: Option<Revocation>,
}

impl Handshake {
    /// Validates a hello by itself.
    pub(super) fn new(hello: v1::WorkerHello) -> Result<Self, Refusal> {
        bounded(
            "held_task_tokens",
            hello.held_task_tokens.len(),
            HELD_TASKS_MAX,
        )?;
        let namespace = request::namespace(&hello.namespace)?;
        let worker = request::name(WorkerId::new(hello.worker_id))?;
        let actions = hello.actions.into_iter();
        let actions: Result<_, Refusal> = actions
            .map(|name| request::name(ActionName::new(name)))
            .collect();
        // A token that cannot be parsed names no task of this cluster.
        let held = hello.held_task_tokens.iter();
        Ok(Self {
            key: WorkerKey { namespace, worker },
            incarnation: hello.incarnation,
            actions: actions?,
            held: held.filter_map(|token| token.parse().ok()).collect(),
            supports_batches: hello.supports_batches,
        })
    }

    pub(super) fn key(&self) -> &WorkerKey {
        &self.key
    }

    /// Whether the worker accepts several items in one message.
    pub(super) fn supports_batches(&self) -> bool {
        self.supports_batches
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The poll's request, from the hello and the registry.
    pub(super) fn request(&self, context: &Context) -> Result<Request, Refusal> {
        let WorkerView {
            record, activity, ..
        } = self.registered(context)?;
        self.check_actions(record.node.is_some())?;
        Ok(Request {
            key: self.key.clone(),
            actions: self.actions.iter().cloned().collect(),
            labels: record.labels,
            concurrency: record.max_concurrency,
            is_draining: activity.status.is_draining(),
            is_embedded: record.node.is_some(),
        })
    }

    /// The worker's standing. Must be read once the poll is open: a task that is assigned in
    /// between is then among the leases or delivered, and a worker ignores a duplicate.
    pub(super) fn standing(&self, context: &Context) -> Result<Standing, Refusal> {
        let found = context.gateway.read_here(|reader| {
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

    /// What the worker has to know about a task; `None` if it is no longer leased to the worker (A4).
    pub(super) fn leased(
        &self,
        context: &Context,
        task: ActionRunNumber,
    ) -> Result<Option<Leased>, Refusal> {
        let leased = context.gateway.read_here(|reader| {
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
            let missing = is_missing.then(|| to_wire(context, assignment, input));
            Leased { missing, cancelled }
        }))
    }

    /// A node's embedded worker takes all WASM actions of its namespace, however many there are.
    fn check_actions(&self, is_embedded: bool) -> Result<(), Refusal> {
        if is_embedded {
            return Ok(());
        }
        bounded("actions", self.actions.len(), PROCESSES_MAX)
    }

    fn registered(&self, context: &Context) -> Result<WorkerView, Refusal> {
        self.check_registered(context.gateway.read_here(|reader| self.look_up(reader))?)
    }

    /// Refuses a worker that is not registered, or registered by another process.
    fn check_registered(&self, known: Option<WorkerView>) -> Result<WorkerView, Refusal> {
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

/// Refuses lists that are too long.
pub(super) fn bounded(field: &'static str, count: usize, count_max: usize) -> Result<(), Refusal> {
    if count <= count_max {
        return Ok(());
    }
    Err(Refusal::invalid(
        field,
        format!("expected at most {count_max} {field}, but found {count}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use crate::workers::Hub;
    use flotilla_engine::WorkerType;
    use flotilla_engine::{Body, DrainWorker, RegisterWorker};
    use flotilla_replica::OfferSource;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn hello(actions_count: usize) -> v1::WorkerHello {
        v1::WorkerHello {
            worker_id: "w".to_owned(),
            actions: (0..actions_count).map(|n| format!("action-{n}")).collect(),
            ..v1::WorkerHello::default()
        }
    }

    #[test]
    fn a_hello_with_more_actions_than_a_worker_may_list_is_refused() {
        let check = |count, is_embedded| {
            let handshake = Handshake::new(hello(count)).unwrap();
            handshake.check_actions(is_embedded)
        };
        assert!(check(PROCESSES_MAX, false).is_ok());
        assert!(check(PROCESSES_MAX + 1, true).is_ok());
        let refusal = check(PROCESSES_MAX + 1, false).unwrap_err();
        let text = refusal.to_string();
        assert!(
            text.contains("at most 1024 actions, but found 1025"),
            "{text}"
        );
        assert!(!refusal.may_succeed_later());
    }

    #[test]
    fn a_hello_with_more_tasks_than_a_worker_can_hold_is_refused() {
        let mut hello = hello(1);
        hello.held_task_tokens = vec![String::new(); HELD_TASKS_MAX];
        assert!(Handshake::new(hello.clone()).is_ok());
        hello.held_task_tokens.push(String::new());
        assert!(Handshake::new(hello).is_err());
    }

    #[test]
    fn an_action_that_is_named_twice_is_offered_once() {
        let mut hello = hello(1);
        hello.actions.push("action-0".to_owned());
        assert_eq!(Handshake::new(hello).unwrap().actions.len(), 1);
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
        let handshake = Handshake::new(hello(1)).unwrap();
        let request = handshake.request(&node.context).unwrap();
        assert!(!request.is_draining);
        let drain = DrainWorker {
            worker_id,
            incarnation: None,
        };
        node.submit(Body::DrainWorker(drain)).await;
        let poll = hub.open(request).unwrap();
        poll.set_total(1).unwrap();
        let standing = handshake.standing(&node.context).unwrap();
        assert!(standing.is_draining);
        poll.set_draining(standing.is_draining);
        assert_eq!(hub.take(1, usize::MAX), []);
    }
}
