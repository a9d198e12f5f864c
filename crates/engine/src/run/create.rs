//! Creating and finding runs.

use super::child::Above;
use super::concurrency::{self, Acquired, Request};
use super::exclusion::{self, GivenExclusion};
use super::taken_over::TakenOver;
use super::{attributes, cursor, input, linked_attempts, start_timer};
use crate::ids::{IdempotencyKey, Namespace, RunId, RunNumber, ScopeNumber};
use crate::json::Json;
use crate::message::cut;
use crate::mostly_default::MostlyDefault;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{
    AttemptChain, DefinitionNumber, EventKind, HistoryCursor, IdempotencyKeys, ParentLink,
    PayloadOwner, PayloadRef, Payloads, RunNames, RunRecord, RunStatus, RunTimers, Runs,
    ScopeProgress, StoredPayload, TriggeredBy, Work,
};
use crate::trace::TraceContext;
use crate::turn::{LoadedRun, Turn, TurnResult};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a new run is made of.
pub(crate) struct NewRun {
    pub(crate) namespace: Namespace,
    pub(crate) run_id: Option<RunId>,
    pub(crate) definition: DefinitionNumber,
    pub(crate) input: Json,
    /// Its metadata, an object (W91).
    pub(crate) metadata: Option<Json>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) triggered_by: TriggeredBy,
    pub(crate) parent: Option<Parent>,
    pub(crate) nesting: u16,
    pub(crate) hops: u8,
    pub(crate) trace: Option<TraceContext>,
    /// When it begins, in milliseconds; `None` is now (W76).
    pub(crate) starts_at_ms: Option<u64>,
    /// Its reserved number, and its place among the attempts, if it is not the first one (W77).
    pub(crate) attempt: Option<(RunNumber, AttemptChain)>,
    /// The target and locks that replace those of the definition (W85).
    pub(crate) exclusion: GivenExclusion,
    /// What it takes over from the run that it retries, if it begins with one of its steps (W90).
    pub(crate) taken_over: Option<TakenOver>,
}

/// The run that waits for a new one (W17).
pub(crate) struct Parent {
    pub(crate) link: ParentLink,
    pub(crate) id: RunId,
    /// It and those above it.
    pub(crate) above: Above,
}

/// A run that was made.
pub(crate) struct CreatedRun {
    pub(crate) number: RunNumber,
    pub(crate) id: RunId,
    /// What it does first; `None` if it waits for something first.
    pub(crate) first_work: Option<Work>,
}

/// What comes of a request for a new run.
pub(crate) enum Creation {
    /// It was made.
    Run(CreatedRun),
    /// This run is used instead, which holds a concurrency key (W84).
    Existing(RunNumber),
}

/// Creates a run, not yet on any step, and adds it to the turn. Its input is completed with the defaults of its
/// definition (W68). If that makes it too large, or a concurrency limit (W84) or another run (W85) does not allow it, the
/// run is rejected, and the turn is as before.
pub(crate) fn create(turn: &mut Turn<'_, '_>, mut new_run: NewRun) -> TurnResult<Creation> {
    let definition = turn.pinned(new_run.definition)?;
    let input_text = match new_run.attempt {
        // It is that of the attempt before it, although the revision may have other defaults.
        Some(_) => new_run.input.clone(),
        None => input::complete(turn, &definition.definition, new_run.input.clone())?,
    };
    let (number, chain) = match new_run.attempt {
        Some((number, chain)) => (number, Some(chain)),
        None => (next_number(turn), None),
    };
    let input = PayloadRef::input_of(PayloadOwner::Run(number));
    turn.put::<Payloads>(&input, StoredPayload::Text(input_text));
    if let Some(metadata) = &new_run.metadata {
        let text = StoredPayload::Text(metadata.clone());
        turn.put::<Payloads>(&metadata_of(number), text);
    }
    let record = record_of(turn, number, &new_run, chain);
    let parent = new_run.parent.as_ref();
    let mut run = LoadedRun::new(number, record, definition);
    run.parent_id = parent.map(|parent| Box::new(parent.id.clone()));
    run.note_run(EventKind::WorkflowStarted {
        input,
        parent: parent.map(|parent| parent.id.clone()),
    });
    let acquired = match admit(turn, &mut run, &new_run) {
        Ok(Acquired::Existing(existing)) => {
            undo(turn, number);
            return Ok(Creation::Existing(existing));
        }
        Err(refused) => {
            undo(turn, number);
            return Err(refused);
        }
        Ok(acquired) => acquired,
    };
    if let Some(taken_over) = new_run.taken_over.take() {
        taken_over.write(turn, &mut run)?;
    }
    let first_work = match acquired {
        Acquired::Queued(work) => work,
        _ if run.record.awaits_locks() => None,
        _ => Some(cursor::first_work(&run)),
    };
    note_names(turn, &run, &new_run);
    run.record.detail =
        attributes::compute(turn, &mut run, ScopeNumber::ROOT)?.map(|note| cut(&note));
    start_timer::set(turn, &run);
    let id = run.record.id.clone();
    turn.add_run(run);
    Ok(Creation::Run(CreatedRun {
        number,
        id,
        first_work,
    }))
}

/// Undoes what was written for a run that is not created.
fn undo(turn: &mut Turn<'_, '_>, number: RunNumber) {
    turn.delete::<Payloads>(&PayloadRef::input_of(PayloadOwner::Run(number)));
    turn.delete::<Payloads>(&metadata_of(number));
    let last = &mut turn.cluster_mut().run_count;
    assert_eq!(*last, number.0, "no run was created meanwhile");
    *last -= 1;
}

/// Gives a new run its target and its locks, and its concurrency keys unless its time is yet to come.
fn admit(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, new_run: &NewRun) -> TurnResult<Acquired> {
    let parent = new_run.parent.as_ref();
    // An attempt takes over what the one before it holds.
    let prepared = match new_run.attempt {
        Some(_) => None,
        None => exclusion::prepare(turn, run, &new_run.exclusion)?,
    };
    let above = parent.map_or(&[][..], |parent| &parent.above.runs);
    let conflict = exclusion::conflict(turn, &new_run.namespace, prepared.as_ref(), above)?;
    let acquired = match (run.record.timers.starts_at_ms, conflict) {
        (Some(_), Some(conflict)) => return Err(Rejection::from(conflict).into()),
        // Its keys are requested when its time has come.
        (Some(_), None) => Acquired::Queued(None),
        (None, conflict) => {
            let request = Request {
                held_above: parent.map_or(&[], |parent| &parent.above.held_keys),
                may_use_existing: new_run.triggered_by.may_use_existing(),
                is_handed_over: new_run.attempt.is_some(),
                conflict,
            };
            concurrency::acquire(turn, run, &request)?
        }
    };
    let is_used = !matches!(acquired, Acquired::Existing(_));
    if is_used && let Some(prepared) = prepared {
        exclusion::hold(turn, run, prepared)?;
    }
    Ok(acquired)
}

/// Makes a new run known by the names that its caller gave.
fn note_names(turn: &mut Turn<'_, '_>, run: &LoadedRun, new_run: &NewRun) {
    let namespace = &run.record.namespace;
    if new_run.run_id.is_some() {
        let name = (namespace.clone(), run.record.id.clone());
        turn.put::<RunNames>(&name, run.number);
    }
    if let Some(key) = &new_run.idempotency_key {
        let workflow = run.definition.definition.name.clone();
        turn.put::<IdempotencyKeys>(&(namespace.clone(), workflow, key.clone()), run.number);
    }
}

/// Where the metadata of a run is stored: behind its input.
fn metadata_of(number: RunNumber) -> PayloadRef {
    PayloadRef {
        owner: PayloadOwner::Run(number),
        position: 1,
    }
}

fn record_of(
    turn: &Turn<'_, '_>,
    number: RunNumber,
    new_run: &NewRun,
    chain: Option<AttemptChain>,
) -> RunRecord {
    let generated = || RunId::generated(number);
    RunRecord {
        namespace: new_run.namespace.clone(),
        id: new_run.run_id.clone().unwrap_or_else(generated),
        definition: new_run.definition,
        resumption: MostlyDefault::default(),
        status: RunStatus::Pending,
        end: None,
        fixed_end: None,
        detail: None,
        triggered_by: new_run.triggered_by.clone(),
        parent: new_run.parent.as_ref().map(|parent| parent.link),
        chain,
        start_limits: MostlyDefault::default(),
        nesting: new_run.nesting,
        hops: new_run.hops,
        trace: new_run.trace,
        idempotency_key: new_run.idempotency_key.clone(),
        active_count: 0,
        activations_count: 0,
        left_count: 0,
        unwaited_steps_count: 0,
        scopes: MostlyDefault::default(),
        progress: ScopeProgress::default(),
        looping_step: None,
        continuation: None,
        attributes: BTreeMap::new(),
        timers: MostlyDefault::from(RunTimers {
            starts_at_ms: new_run.starts_at_ms,
            times_out_at_ms: None,
        }),
        input: PayloadRef::input_of(PayloadOwner::Run(number)),
        metadata: new_run.metadata.as_ref().map(|_| metadata_of(number)),
        output: None,
        payloads_count: 1 + u64::from(new_run.metadata.is_some()),
        signals: MostlyDefault::default(),
        infos_count: 0,
        compensations: MostlyDefault::default(),
        history: HistoryCursor::default(),
        started_at_ms: turn.now_ms(),
        began_at_ms: None,
        completed_at_ms: None,
    }
}

/// The number and id of the last attempt at a run, if it is kept. What follows is attributed to it.
fn last_attempt(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Result<Option<(RunNumber, RunId)>, StoreError> {
    let latest = linked_attempts::latest(turn, number)?;
    let id = turn.run_record(latest)?.map(|run| run.id.clone());
    turn.attribute_to(Subject::RunNumber(latest));
    Ok(id.map(|id| (latest, id)))
}

/// The number of a new run.
pub(super) fn next_number(turn: &mut Turn<'_, '_>) -> RunNumber {
    RunNumber(turn.next_number(|cluster| &mut cluster.run_count))
}

/// Checks that a run has not ended.
pub(super) fn check_open(run: &LoadedRun) -> Result<(), Rejection> {
    let status = run.record.status;
    if status.is_open() {
        return Ok(());
    }
    Err(Rejection::RunEnded {
        run_id: run.record.id.clone(),
        status: status.name().to_owned(),
    })
}

/// The run that callers of `namespace` know as `run_id`, or the last one of its attempts (W77), taken out of the turn.
pub(crate) fn find(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    run_id: &RunId,
) -> TurnResult<LoadedRun> {
    let (number, record) = find_record(turn, namespace, run_id)?;
    let (number, id) = match record.chain {
        None => (number, run_id.clone()),
        Some(_) => last_attempt(turn, number)?.unwrap_or_else(|| (number, run_id.clone())),
    };
    load(turn, number, id)
}

/// The run that callers of `namespace` know as `run_id`: this attempt, even if it is not the last one. It is taken out of
/// the turn.
pub(super) fn find_attempt(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    run_id: &RunId,
) -> TurnResult<LoadedRun> {
    let (number, _) = find_record(turn, namespace, run_id)?;
    load(turn, number, run_id.clone())
}

fn load(turn: &mut Turn<'_, '_>, number: RunNumber, id: RunId) -> TurnResult<LoadedRun> {
    if turn.is_quarantined(number) {
        return Err(Rejection::RunQuarantined(id).into());
    }
    turn.load_run(number)
}

pub(super) fn find_record(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    run_id: &RunId,
) -> TurnResult<(RunNumber, Arc<RunRecord>)> {
    let number = match run_id.generated_number() {
        Some(number) => Some(number),
        None => turn
            .get::<RunNames>(&(namespace.clone(), run_id.clone()))?
            .map(|number| *number),
    };
    let missing = || Rejection::RunNotFound(run_id.clone());
    let number = number.ok_or_else(missing)?;
    let record = turn.get::<Runs>(&number)?.ok_or_else(missing)?;
    // A run with a caller's id has no generated id.
    if record.namespace != *namespace || record.id != *run_id {
        return Err(missing().into());
    }
    Ok((number, record))
}
