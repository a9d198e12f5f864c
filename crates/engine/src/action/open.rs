//! Making an action run, not yet ready.

use crate::ids::{ActionName, ActionRunNumber, IdempotencyKey, Namespace};
use crate::json::Json;
use crate::run::LoadedRun;
use crate::tables::{
    ActionRecord, ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns, ActionRunsByAction,
    Activation, PayloadOwner, PayloadRef, Payloads,
};
use crate::task;
use crate::turn::{Outcome, Turn};
use std::collections::BTreeMap;

/// The priority when none is given (A2).
pub(crate) const PRIORITY_DEFAULT: u8 = 10;

/// What a new action run is made of, beside its action's settings.
pub(crate) struct Opening<'r> {
    pub(crate) namespace: Namespace,
    pub(crate) name: ActionName,
    pub(crate) owner: Owner<'r>,
    pub(crate) input: ActionInput,
    pub(crate) priority: u8,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
}

/// For whom an action run is made.
pub(crate) enum Owner<'r> {
    /// A step of a run: the run remembers its last action run.
    Step(&'r mut LoadedRun, &'r Activation),
    /// A caller (A2).
    Caller,
}

/// Where an action run's input is.
pub(crate) enum ActionInput {
    /// Stored with the workflow run already.
    Stored(PayloadRef),
    /// To be stored with the action run itself.
    Own(Json),
}

/// Makes an action run with the settings that the action has now.
///
/// # Errors
/// [`Rejection::TooMany`](crate::Rejection::TooMany) when the open runs of the action ask for as many
/// sets of labels as they may.
pub(crate) fn open(
    turn: &mut Turn<'_, '_>,
    action: &ActionRecord,
    opening: Opening<'_>,
) -> Outcome<ActionRunNumber> {
    let number = ActionRunNumber(turn.next_number(|cluster| &mut cluster.action_runs_count)?);
    let input = match opening.input {
        ActionInput::Stored(reference) => reference,
        ActionInput::Own(input) => {
            let reference = PayloadRef {
                owner: PayloadOwner::ActionRun(number),
                position: 0,
            };
            turn.put::<Payloads>(&reference, input);
            reference
        }
    };
    turn.put::<ActionRunsByAction>(
        &(opening.namespace.clone(), opening.name.clone(), number),
        (),
    );
    let (owner, previous) = match opening.owner {
        Owner::Step(run, active) => {
            let previous = run.record.last_action_run.replace(number);
            let owner = ActionRunOwner::Step {
                run: run.number,
                activation: active.number,
            };
            (owner, previous)
        }
        Owner::Caller => (ActionRunOwner::Caller, None),
    };
    let record = ActionRunRecord {
        namespace: opening.namespace,
        action: opening.name,
        owner,
        previous,
        status: ActionRunStatus::Pending,
        attempt: 1,
        attempts_max: action.max_retries.saturating_add(1),
        retry_delay_ms: action.retry_delay_ms,
        timeout_ms: action.timeout_ms,
        priority: opening.priority,
        labels: opening.labels,
        idempotency_key: opening.idempotency_key,
        input,
        output: None,
        outcome: None,
        error: None,
        lease: None,
        report: None,
        created_at_ms: turn.now_ms(),
        started_at_ms: None,
        completed_at_ms: None,
    };
    task::open_label_queue(turn, &record)?;
    turn.put::<ActionRuns>(&number, record);
    Ok(number)
}
