//! The running handlers.

use super::builder::Setup;
use super::lease::{Lease, TouchOrder};
use super::report::Report;
use super::{ActionContext, HandlerError};
use flotilla_api::v1::TaskAssignment;
use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The running handlers. Dropping it aborts them all.
#[derive(Debug)]
pub(super) struct TaskPool {
    setup: Arc<Setup>,
    orders: mpsc::Sender<TouchOrder>,
    handlers: JoinSet<Report>,
    /// Invariant: contains the handlers that were neither reported nor abandoned.
    tasks: HashMap<Id, Task>,
}

#[derive(Debug)]
struct Task {
    token: String,
    handle: AbortHandle,
}

impl TaskPool {
    /// A pool without handlers. Touches are requested through `orders`.
    pub(super) fn new(setup: Arc<Setup>, orders: mpsc::Sender<TouchOrder>) -> Self {
        Self {
            setup,
            orders,
            handlers: JoinSet::new(),
            tasks: HashMap::new(),
        }
    }

    /// The number of running handlers.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Starts the handler of a task.
    pub(super) fn start(&mut self, task: TaskAssignment) {
        let token = task.task_token.clone();
        let handle = self
            .handlers
            .spawn(run(self.setup.clone(), task, self.orders.clone()));
        self.tasks.insert(handle.id(), Task { token, handle });
    }

    /// The next handler that ends, with its report; a panic is an end, too. Waits forever without
    /// running handlers. Cancel-safe.
    pub(super) async fn next(&mut self) -> (String, Report) {
        loop {
            let Some(ended) = self.handlers.join_next_with_id().await else {
                pending::<()>().await;
                continue;
            };
            if let Some(end) = self.end(ended) {
                return end;
            }
        }
    }

    /// Drops a handler. When it has stopped, that is reported.
    pub(super) fn cancel(&mut self, token: &str) {
        let mut tasks = self.tasks.values();
        if let Some(task) = tasks.find(|task| task.token == token) {
            task.handle.abort();
        }
    }

    /// Drops a handler; nothing is reported.
    pub(super) fn give_up(&mut self, token: &str) {
        self.tasks.retain(|_, task| {
            let is_other = task.token != token;
            if !is_other {
                task.handle.abort();
            }
            is_other
        });
    }

    /// Drops all handlers and returns the report on each.
    pub(super) fn stop(&mut self) -> Vec<(String, Report)> {
        let mut reports = Vec::new();
        // A handler that has already finished is not reported as stopped.
        while let Some(ended) = self.handlers.try_join_next_with_id() {
            reports.extend(self.end(ended));
        }
        self.handlers.abort_all();
        reports.extend(
            self.tasks
                .drain()
                .map(|(_, task)| (task.token, Report::of_stop())),
        );
        reports
    }

    fn end(&mut self, ended: Result<(Id, Report), JoinError>) -> Option<(String, Report)> {
        let (id, report) = match ended {
            Ok(ended) => ended,
            Err(error) if error.is_cancelled() => (error.id(), Report::of_cancel()),
            Err(error) => (error.id(), Report::of_panic(error)),
        };
        self.tasks.remove(&id).map(|task| (task.token, report))
    }
}

/// Runs one handler within the worker's limit, and extends its lease meanwhile.
async fn run(setup: Arc<Setup>, task: TaskAssignment, orders: mpsc::Sender<TouchOrder>) -> Report {
    let Some(handler) = setup.handlers.get(&task.action) else {
        let message = format!(
            "expected a handler of action {:?}, but it does not exist",
            task.action
        );
        let error = HandlerError::retry(message).with_code("handler_missing");
        return Report::of(Err(error), false);
    };
    let can_accept = task.can_accept;
    let length = Duration::from_millis(task.lease_ms);
    let lease = Arc::new(Lease::new(task.task_token.clone(), length, orders));
    let cancellation = CancellationToken::new();
    let _cancelled_at_the_end = cancellation.clone().drop_guard();
    let client = setup.client.clone();
    let context = ActionContext::new(client, Arc::new(task), lease.clone(), cancellation);
    tokio::select! {
        biased;
        result = handler(context) => Report::of(result, can_accept),
        () = sleep(setup.action_timeout) => Report::of_timeout(setup.action_timeout),
        never = lease.keep() => match never {},
    }
}
