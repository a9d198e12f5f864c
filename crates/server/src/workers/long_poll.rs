//! One long poll at the leader: the unary form of a stream's assignments (A22).

use super::assignment;
use super::handshake::Handshake;
use crate::access::CallContext;
use crate::errors::Refusal;
use crate::limits::{AWAIT_BYTES_MAX, AWAIT_MS_DEFAULT, AWAIT_MS_MAX};
use crate::watch::cut_off;
use flotilla_api::v1;
use flotilla_leader::{Hub, LeasedTask, Revocation, Session, ToWorker};
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The maximum overhead of a task in a response: its tag and its length. In bytes.
const TASK_HEADER_BYTES: usize = 6;

/// A response within its size limit.
struct TaskBatch {
    response: v1::AwaitResponse,
    bytes: usize,
    bytes_max: usize,
}

/// How long a poll waits, within its limit.
pub(super) fn wait_of(request: &v1::AwaitRequest) -> Duration {
    Duration::from_millis(
        request
            .wait_ms
            .unwrap_or(AWAIT_MS_DEFAULT)
            .min(AWAIT_MS_MAX),
    )
}

/// Waits for tasks at this node, which leads.
///
/// A poll that is closed meanwhile returns what it has: the worker polls again and finds the new
/// leader. Tasks that were assigned to it and are not in the response are redelivered then.
pub(super) async fn await_tasks(
    context: &CallContext,
    hub: &Arc<Hub>,
    request: v1::AwaitRequest,
) -> Result<v1::AwaitResponse, Refusal> {
    let deadline = Instant::now() + wait_of(&request);
    let slots = u64::from(request.slots.max(1));
    let handshake = Handshake::new(v1::WorkerHello {
        namespace: request.namespace,
        worker_id: request.worker_id,
        incarnation: request.incarnation,
        actions: request.actions,
        held_task_tokens: request.held_task_tokens,
        supports_batches: true,
    })?;
    let mut session = handshake.open(context, hub)?;
    let mut gathered = TaskBatch::new(AWAIT_BYTES_MAX);
    gathered.response.draining = session.is_draining();
    while let Some(leased) = session.next_leased()? {
        if !gathered.add_leased(context, leased) {
            break;
        }
    }
    if gathered.response.tasks.is_empty() && !session.is_draining() {
        session.set_total(slots);
        match session.next_leased() {
            Ok(_) => gather(context, &mut session, &mut gathered, deadline).await?,
            Err(flotilla_leader::Error::PollClosed(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(gathered.response)
}

/// Waits for the first message, then takes those that came with it.
async fn gather(
    context: &CallContext,
    session: &mut Session,
    gathered: &mut TaskBatch,
    deadline: Instant,
) -> Result<(), Refusal> {
    let mut next = tokio::select! {
        next = timeout_at(deadline, session.next()) => next.ok().flatten(),
        refusal = cut_off(context) => return Err(refusal),
    };
    while let Some(message) = next {
        match message {
            ToWorker::Task(assignment) => {
                if !gathered.add(assignment::read(context, *assignment)?) {
                    break;
                }
            }
            ToWorker::Revoked(revocation) => gathered.revoke(revocation),
            ToWorker::Draining => gathered.response.draining = true,
        }
        next = session.next_ready();
    }
    Ok(())
}

impl TaskBatch {
    fn new(bytes_max: usize) -> Self {
        Self {
            response: v1::AwaitResponse::default(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds what the worker has to know about a task that is leased to it; false if there is no room for it.
    fn add_leased(&mut self, context: &CallContext, leased: LeasedTask) -> bool {
        let LeasedTask { missing, cancelled } = leased;
        let has_room =
            missing.is_none_or(|(task, input)| self.add(assignment::to_wire(context, task, input)));
        if let Some(revocation) = cancelled.filter(|_| has_room) {
            self.revoke(revocation);
        }
        has_room
    }

    /// Names a cancelled task. One that the worker no longer holds is not delivered.
    fn revoke(&mut self, revocation: Revocation) {
        let task_id = revocation.token.task_id();
        if revocation.is_answer_awaited {
            self.response.cancelled_task_ids.push(task_id);
        } else {
            let tasks = &mut self.response.tasks;
            tasks.retain(|task| task.task_id != task_id);
        }
    }

    /// Adds a task; false if there is no room for it.
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
        let mut gathered = TaskBatch::new(3_500);
        let added: Vec<bool> = (0..4).map(|_| gathered.add(task.clone())).collect();
        assert_eq!(added, [true, true, true, false]);
        assert!(gathered.response.encoded_len() <= 3_500);
        assert_eq!(gathered.response.tasks.len(), 3);
    }

    #[test]
    fn a_poll_waits_within_its_bound() {
        let request = |wait_ms| v1::AwaitRequest {
            wait_ms,
            ..v1::AwaitRequest::default()
        };
        assert_eq!(wait_of(&request(None)), Duration::from_secs(30));
        assert_eq!(wait_of(&request(Some(0))), Duration::ZERO);
        assert_eq!(wait_of(&request(Some(u64::MAX))), Duration::from_secs(300));
    }
}
