//! Creating action runs, which are not ready yet.

use crate::definition::Timeouts;
use crate::ids::{ActionName, ActionRunNumber, IdempotencyKey, Namespace};
use crate::json::Json;
use crate::limits::ACTION_RUN_WAIT_MS_MAX;
use crate::tables::{
    ActionRecord, ActionRunBlock, ActionRunOwner, ActionRunRecord, ActionRunStatus,
    ActionRunsByAction, Activation, PayloadOwner, PayloadRef, Payloads, StoredPayload,
};
use crate::task::{self, LoadedTask};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The priority when none is given (A2).
pub(crate) const PRIORITY_DEFAULT: u8 = 10;

/// The properties of a new action run, besides its action's settings.
pub(crate) struct NewActionRun<'r> {
    pub(crate) namespace: Namespace,
    pub(crate) name: ActionName,
    pub(crate) owner: Owner<'r>,
    pub(crate) input: ActionInput,
    pub(crate) priority: u8,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
}

/// The owner of a new action run.
pub(crate) enum Owner<'r> {
    /// A step of a run, whose next event is that of the creation.
    Step(&'r mut LoadedRun, &'r Activation),
    /// A caller (A2).
    Caller,
}

/// Where an action run's input is.
pub(crate) enum ActionInput {
    /// Already stored with the workflow run.
    Stored(PayloadRef),
    /// To be stored with the action run itself.
    Own(Json),
}

/// Creates an action run with the action's current settings. Its record is yet to be put.
///
/// # Errors
/// [`Rejection::LimitExceeded`](crate::Rejection::LimitExceeded) if the open action runs of the action already use all
/// sets of labels that are allowed.
pub(crate) fn create(
    turn: &mut Turn<'_, '_>,
    action: &ActionRecord,
    new_action_run: NewActionRun<'_>,
) -> TurnResult<LoadedTask> {
    let number = ActionRunNumber(turn.next_number(|cluster| &mut cluster.action_runs_count));
    let input = match new_action_run.input {
        ActionInput::Stored(reference) => reference,
        ActionInput::Own(input) => {
            let reference = PayloadRef::input_of(PayloadOwner::ActionRun(number));
            turn.put::<Payloads>(&reference, StoredPayload::Text(input));
            reference
        }
    };
    let by_action = (
        new_action_run.namespace.clone(),
        new_action_run.name.clone(),
        ActionRunBlock::of(number),
    );
    turn.insert_member::<ActionRunsByAction>(&by_action, number)?;
    let limits = match &new_action_run.owner {
        Owner::Step(run, active) => {
            let definition = &run.definition.definition;
            definition.timeouts(active.step, active.call)
        }
        Owner::Caller => Timeouts {
            queue_ms: Some(ACTION_RUN_WAIT_MS_MAX),
            ..Timeouts::default()
        },
    };
    let (owner, first_event) = match new_action_run.owner {
        Owner::Step(run, active) => {
            let first_event = run.next_event();
            run.hold_payload(turn, input, first_event)?;
            let owner = ActionRunOwner::Step {
                run: run.number,
                activation: active.number,
            };
            (owner, first_event)
        }
        Owner::Caller => (ActionRunOwner::Caller, 0),
    };
    let record = ActionRunRecord {
        namespace: new_action_run.namespace,
        action: new_action_run.name,
        owner,
        last_event: first_event,
        status: ActionRunStatus::Pending,
        attempt: 1,
        attempts_max: action.max_retries.saturating_add(1),
        retry_delay_ms: action.retry_delay_ms,
        timeout_ms: limits.heartbeat_ms.unwrap_or(action.timeout_ms),
        has_step_heartbeat: limits.heartbeat_ms.is_some(),
        queue_timeout_ms: limits.queue_ms,
        priority: new_action_run.priority,
        labels: new_action_run.labels,
        idempotency_key: new_action_run.idempotency_key,
        input,
        output: None,
        outcome: None,
        error: None,
        lease: None,
        is_cancelling: false,
        report: None,
        wait_ends_at_ms: None,
        created_at_ms: turn.now_ms(),
        started_at_ms: None,
        completed_at_ms: None,
    };
    task::open_label_queue(turn, &record)?;
    Ok(LoadedTask {
        number,
        record: Draft::of(Arc::new(record)),
    })
}
