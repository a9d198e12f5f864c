//! One long poll at the leader: the unary twin of a stream's assignments (A22).

use super::assignment;
use super::greeting::Greeting;
use super::hub::{Hub, OpenPoll};
use super::poll::ToWorker;
use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::{AWAIT_BYTES_MAX, AWAIT_MS_DEFAULT, AWAIT_MS_MAX};
use flotilla_api::v1;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// What goes before each task in a response, at most: its tag and its length. In bytes.
const TASK_HEADER_BYTES: usize = 6;

/// A response within its bound.
struct Gathered {
    response: v1::AwaitResponse,
    bytes: usize,
    bytes_max: usize,
}

/// How long a poll waits, within its bound.
pub(super) fn wait_of(asked: &v1::AwaitRequest) -> Duration {
    Duration::from_millis(asked.wait_ms.unwrap_or(AWAIT_MS_DEFAULT).min(AWAIT_MS_MAX))
}

/// Waits for tasks at this node, which leads.
///
/// A poll that is closed meanwhile is answered with what there is: the worker asks again, and finds
/// the new leader. What was assigned to it but is not in the answer is handed out then.
pub(super) async fn await_tasks(
    context: &Context,
    hub: &Arc<Hub>,
    asked: v1::AwaitRequest,
) -> Result<v1::AwaitResponse, Refusal> {
    let deadline = Instant::now() + wait_of(&asked);
    let slots = u64::from(asked.slots.max(1));
    let greeting = Greeting::new(v1::WorkerHello {
        namespace: asked.namespace,
        worker_id: asked.worker_id,
        incarnation: asked.incarnation,
        actions: asked.actions,
        held_task_tokens: asked.held_task_tokens,
        takes_batches: true,
    })?;
    let mut poll = hub.open(greeting.request(context)?)?;
    let standing = greeting.standing(context)?;
    let mut gathered = Gathered::new(AWAIT_BYTES_MAX);
    gathered.response.draining = standing.is_draining;
    for task in standing.leases {
        if let Some(task) = greeting.missing(context, task)?
            && !gathered.add(task)
        {
            break;
        }
    }
    if gathered.response.tasks.is_empty() && !standing.is_draining && poll.set_total(slots).is_ok()
    {
        gather(context, &mut poll, (&mut gathered, deadline)).await?;
    }
    Ok(gathered.response)
}

/// Waits for the first message, then takes what has come with it.
async fn gather(
    context: &Context,
    poll: &mut OpenPoll,
    (gathered, deadline): (&mut Gathered, Instant),
) -> Result<(), Refusal> {
    let mut next = timeout_at(deadline, poll.next()).await.ok().flatten();
    while let Some(message) = next {
        match message {
            ToWorker::Task(assignment) => {
                if !gathered.add(assignment::read(context, *assignment)?) {
                    break;
                }
            }
            ToWorker::Revoked(token) => {
                let token = token.to_string();
                let tasks = &mut gathered.response.tasks;
                tasks.retain(|task| task.task_token != token);
            }
            ToWorker::Draining => gathered.response.draining = true,
        }
        next = poll.next_ready();
    }
    Ok(())
}

impl Gathered {
    fn new(bytes_max: usize) -> Self {
        Self {
            response: v1::AwaitResponse::default(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds a task; false when there is no room for it.
    fn add(&mut self, task: v1::TaskAssignment) -> bool {
        let bytes = self.bytes + task.encoded_len() + TASK_HEADER_BYTES;
        let has_room = bytes <= self.bytes_max;
        if has_room {
            self.bytes = bytes;
            self.response.tasks.push(task);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_as_many_tasks_as_fit_into_its_bytes() {
        let task = v1::TaskAssignment {
            input: vec![b'1'; 1_000].into(),
            ..v1::TaskAssignment::default()
        };
        let mut gathered = Gathered::new(3_500);
        let added: Vec<bool> = (0..4).map(|_| gathered.add(task.clone())).collect();
        assert_eq!(added, [true, true, true, false]);
        assert!(gathered.response.encoded_len() <= 3_500);
        assert_eq!(gathered.response.tasks.len(), 3);
    }

    #[test]
    fn a_poll_waits_within_its_bound() {
        let asked = |wait_ms| v1::AwaitRequest {
            wait_ms,
            ..v1::AwaitRequest::default()
        };
        assert_eq!(wait_of(&asked(None)), Duration::from_secs(30));
        assert_eq!(wait_of(&asked(Some(0))), Duration::ZERO);
        assert_eq!(wait_of(&asked(Some(u64::MAX))), Duration::from_secs(300));
    }
}
