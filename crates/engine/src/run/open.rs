//! Making runs and finding them.

use super::attributes;
use super::loaded::{LoadedRun, load};
use crate::ids::{IdempotencyKey, Namespace, RunId, RunNumber};
use crate::json::Json;
use crate::quarantine::cut;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{
    DefinitionNumber, EventKind, HistoryCursor, IdempotencyKeys, ParentLink, PayloadOwner,
    PayloadRef, Payloads, RunNames, RunRecord, RunStatus, Runs, TriggeredBy,
};
use crate::trace::TraceContext;
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a new run is made of.
pub(crate) struct Opening {
    pub(crate) namespace: Namespace,
    pub(crate) run_id: Option<RunId>,
    pub(crate) definition: DefinitionNumber,
    pub(crate) input: Json,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) triggered_by: TriggeredBy,
    pub(crate) parent: Option<Parent>,
    pub(crate) nesting: u16,
    pub(crate) trace: Option<TraceContext>,
}

/// The run that waits for a new one (W17).
pub(crate) struct Parent {
    pub(crate) link: ParentLink,
    pub(crate) id: RunId,
}

/// A run that was made.
pub(crate) struct Opened {
    pub(crate) number: RunNumber,
    pub(crate) id: RunId,
}

/// Makes a run, not yet on any step, and adds it to those of the turn.
pub(crate) fn open(turn: &mut Turn<'_, '_>, opening: Opening) -> Outcome<Opened> {
    let number = RunNumber(turn.next_number(|cluster| &mut cluster.runs_count)?);
    let id = opening
        .run_id
        .clone()
        .unwrap_or_else(|| RunId::generated(number));
    if opening.run_id.is_some() {
        turn.put::<RunNames>(&(opening.namespace.clone(), id.clone()), number);
    }
    let definition = pinned(turn, opening.definition)?;
    if let Some(key) = &opening.idempotency_key {
        let workflow = definition.definition.name.clone();
        turn.put::<IdempotencyKeys>(&(opening.namespace.clone(), workflow, key.clone()), number);
    }
    let input = PayloadRef {
        owner: PayloadOwner::Run(number),
        position: 0,
    };
    turn.put::<Payloads>(&input, opening.input);
    let run = RunRecord {
        namespace: opening.namespace,
        id: id.clone(),
        definition: opening.definition,
        status: RunStatus::Pending,
        end: None,
        detail: None,
        triggered_by: opening.triggered_by,
        parent: opening.parent.as_ref().map(|parent| parent.link),
        nesting: opening.nesting,
        trace: opening.trace,
        idempotency_key: opening.idempotency_key,
        active_count: 0,
        activations_count: 0,
        left_count: 0,
        last_left: None,
        steps_since_wait: 0,
        has_waited: false,
        continuation: None,
        attributes: BTreeMap::new(),
        last_action_run: None,
        input,
        output: None,
        payloads_count: 1,
        signals_count: 0,
        history: HistoryCursor::default(),
        started_at_ms: turn.now_ms(),
        completed_at_ms: None,
    };
    let mut run = LoadedRun::new(number, None, (Arc::new(run), definition));
    let kind = EventKind::WorkflowStarted {
        input,
        parent: opening.parent.map(|parent| parent.id),
    };
    run.note_run(kind);
    run.record.detail = attributes::compute(turn, &mut run)?.map(|note| cut(&note));
    turn.runs().put(run);
    Ok(Opened { number, id })
}

/// The run that callers of `namespace` know as `run_id`, taken out of the turn.
pub(crate) fn find(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    run_id: &RunId,
) -> Outcome<LoadedRun> {
    let number = match run_id.generated_number() {
        Some(number) => Some(number),
        None => turn
            .get::<RunNames>(&(namespace.clone(), run_id.clone()))?
            .map(|number| *number),
    };
    let missing = || Rejection::RunNotFound(run_id.clone());
    let number = number.ok_or_else(missing)?;
    let record = turn.get::<Runs>(&number)?.ok_or_else(missing)?;
    // A run whose caller chose its id has no other.
    if record.namespace != *namespace || record.id != *run_id {
        return Err(missing().into());
    }
    if turn.is_quarantined(number) {
        return Err(Rejection::RunQuarantined(run_id.clone()).into());
    }
    load(turn, number)
}

/// Reads a payload.
///
/// # Panics
/// When it is not there: payloads live as long as their owner.
pub(crate) fn payload(
    turn: &mut Turn<'_, '_>,
    reference: PayloadRef,
) -> Result<Arc<Json>, StoreError> {
    let payload = turn.get::<Payloads>(&reference)?;
    let payload = payload.expect("a payload is kept as long as its owner");
    turn.spend_read(payload.as_str().len());
    Ok(payload)
}
