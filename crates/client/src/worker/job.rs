//! The job of a task: its handler, within the worker's limit, and its lease.

use super::builder::Setup;
use super::lease::{Lease, TouchOrder};
use super::report::Report;
use super::{ActionContext, HandlerError};
use flotilla_api::v1::TaskAssignment;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Runs one handler within the worker's limit, and extends its lease meanwhile.
pub(super) async fn run(
    setup: Arc<Setup>,
    task: TaskAssignment,
    orders: mpsc::Sender<TouchOrder>,
) -> Report {
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
    let lease = Arc::new(Lease::new(task.task_id.clone(), length, orders));
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
