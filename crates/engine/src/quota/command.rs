//! The quota of commands (X38, X39). Apart from [`super::check`], because nouns do not know of commands.

use super::check::{ONE_COMMAND, check, spend};
use crate::command::{Admission, Body, Command};
use crate::reply::{ExistingReason, Reply};
use crate::store::StoreError;
use crate::turn::{Turn, TurnResult};

/// Checks the quota of commands for one that has a request id and begins new work. A command with a natural identity is
/// checked once it is known to be new.
pub(crate) fn admit_command(turn: &mut Turn<'_, '_>, command: &Command) -> TurnResult<()> {
    let Some(namespace) = command.scope.namespace() else {
        return Ok(());
    };
    if command.request_id.is_none() || !is_new_work(&command.body) {
        return Ok(());
    }
    turn.ask_for_command();
    match has_identity(&command.body) {
        true => Ok(()),
        false => check(turn, namespace, &[]),
    }
}

/// Counts an accepted command with a request id, unless it was answered with what exists already.
pub(crate) fn spend_command(
    turn: &mut Turn<'_, '_>,
    command: &Command,
    reply: &Reply,
) -> Result<(), StoreError> {
    match command.scope.namespace() {
        Some(namespace) if command.request_id.is_some() && !is_of_existing(reply) => {
            spend(turn, namespace, ONE_COMMAND)
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a quota may refuse the command. The info of a task belongs to work that is open.
pub(super) fn is_new_work(body: &Body) -> bool {
    body.admission() == Admission::Intake && !matches!(body, Body::AddTaskInfo(_))
}

/// Whether something that exists may answer the command.
fn has_identity(body: &Body) -> bool {
    let is_start = matches!(body, Body::StartRun(start) if start.idempotency_key.is_some());
    let is_retry = matches!(body, Body::RetryRun(retry) if retry.start.idempotency_key.is_some());
    let is_invoke = matches!(body, Body::InvokeAction(invoke) if invoke.idempotency_key.is_some());
    is_start || is_retry || is_invoke
}

fn is_of_existing(reply: &Reply) -> bool {
    let by_key = Some(ExistingReason::IdempotencyKey);
    let is_run = matches!(reply, Reply::RunStarted(started) if started.existing == by_key);
    let is_action_run = matches!(reply, Reply::ActionInvoked(invoked) if invoked.is_existing);
    let is_signal = matches!(reply, Reply::SignalAccepted(accepted) if accepted.is_repeated);
    is_run || is_action_run || is_signal
}
