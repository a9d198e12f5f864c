//! The handshake of a poll: the worker's hello.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::keyring::ShownTaskToken;
use crate::limits::HELD_TASKS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
use flotilla_engine::limits::PROCESSES_MAX;
use flotilla_leader::{Hub, Poller, Session, WorkerKey};
use std::sync::Arc;

/// A well-formed hello.
pub(super) struct Handshake {
    poller: Poller,
    supports_batches: bool,
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
        let worker = request::name("worker_id", WorkerId::new(hello.worker_id))?;
        let actions = hello.actions.into_iter();
        let actions: Result<_, Refusal> = actions
            .map(|name| request::name("actions", ActionName::new(name)))
            .collect();
        // A token that cannot be parsed names no task of this cluster.
        let held = hello.held_task_tokens.iter();
        Ok(Self {
            poller: Poller {
                key: WorkerKey { namespace, worker },
                incarnation: hello.incarnation,
                actions: actions?,
                held: held
                    .filter_map(|token| ShownTaskToken::unverified(token).ok())
                    .collect(),
            },
            supports_batches: hello.supports_batches,
        })
    }

    /// Whether the worker accepts several items in one message.
    pub(super) fn supports_batches(&self) -> bool {
        self.supports_batches
    }

    /// The worker's namespace.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.poller.key.namespace
    }

    /// Opens the worker's poll.
    pub(super) fn open(self, context: &CallContext, hub: &Arc<Hub>) -> Result<Session, Refusal> {
        let group = context.judge_in(&self.poller.key.namespace);
        // The worker may have been registered with another credential.
        group.check_here()?;
        let replica = group.replica();
        let request = self.poller.request(replica)?;
        self.check_actions(request.is_embedded)?;
        Ok(Session::open(hub, replica, self.poller, request)?)
    }

    /// A node's embedded worker takes all WASM actions of its namespace, however many there are.
    fn check_actions(&self, is_embedded: bool) -> Result<(), Refusal> {
        if is_embedded {
            return Ok(());
        }
        bounded("actions", self.poller.actions.len(), PROCESSES_MAX)
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
        assert_eq!(Handshake::new(hello).unwrap().poller.actions.len(), 1);
    }
}
