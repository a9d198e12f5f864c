//! Starting a run (W20).

use super::advance::advance;
use super::create::{self, Creation, NewRun};
use super::exclusion::GivenExclusion;
use super::taken_over::TakenOver;
use crate::definition::{Idempotency, Lock};
use crate::due_time::DueTime;
use crate::ids::{IdempotencyKey, Namespace, RunId, RunNumber, WorkflowName};
use crate::json::Json;
use crate::limits::{BOUND_KEYS_MAX, WAIT_MS_MAX};
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::{ExistingReason, RunStarted};
use crate::start_rejection::StartRejection;
use crate::tables::{
    BoundIdempotencyKeys, DefinitionNumber, IdempotencyKeys, RunNames, TriggeredBy,
};
use crate::trace::TraceContext;
use crate::turn::{Turn, TurnResult};
use crate::workflow::{ResolvedDefinition, VersionChoice};
use serde::{Deserialize, Serialize};

/// Starts a run of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRun {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Which revision.
    pub version: VersionChoice,
    /// The input.
    pub input: Json,
    /// The definition against whose schema the input was validated before proposal (W4), if it has one. The log carries
    /// the result of the validation.
    pub input_checked_for: Option<DefinitionNumber>,
    /// The caller's key.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The caller's own id for the run.
    pub run_id: Option<RunId>,
    /// The caller's trace context: the run's steps join the trace, whichever node leads. A repeated start leaves the
    /// run in the trace of the first.
    pub trace: Option<TraceContext>,
    /// When the run begins (W76); `None` is now.
    pub start_time: Option<DueTime>,
    /// What the run and its children read as `$.meta`, an object (W91).
    pub metadata: Option<Json>,
    /// What the run works on; `None` is the definition's target (W85).
    pub target: Option<String>,
    /// Its locks, compiled before proposal; `None` is those of the definition (W85).
    pub locks: Option<Vec<Lock>>,
}

impl StartRun {
    /// A start of the latest revision, now, without a key or anything else that a caller may choose.
    #[must_use]
    pub fn new(workflow: WorkflowName, input: Json) -> Self {
        Self {
            workflow,
            version: VersionChoice::Latest,
            input,
            input_checked_for: None,
            idempotency_key: None,
            run_id: None,
            trace: None,
            start_time: None,
            metadata: None,
            target: None,
            locks: None,
        }
    }

    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RunStarted> {
        if let Some(existing) = self.answer_existing(turn, namespace)? {
            return Ok(existing);
        }
        self.check_quota(turn, namespace)?;
        self.create(turn, namespace, TriggeredBy::Caller, None)
    }

    /// Checks that the quotas of the namespace allow the start, before anything else may refuse it (X38).
    pub(super) fn check_quota(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<()> {
        let input_bytes = self.input.as_str().len() as u64;
        let needs = [
            (QuotaDimension::StartsPerMinute, 1),
            (QuotaDimension::OpenRuns, 1),
            (QuotaDimension::PayloadBytes, input_bytes),
        ];
        quota::check(turn, namespace, &needs)
    }

    /// Whether it is without what a node adds before proposal.
    pub(crate) fn is_as_asked(&self) -> bool {
        self.input_checked_for.is_none() && self.trace.is_none()
    }

    /// The start without what a node adds before proposal.
    pub(crate) fn as_asked(&self) -> Self {
        Self {
            input_checked_for: None,
            trace: None,
            ..self.clone()
        }
    }

    /// The answer if the idempotency key names a run. It is looked up before anything else may refuse the start (W20).
    pub(super) fn answer_existing(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<Option<RunStarted>> {
        let existing = self.existing(turn, namespace)?;
        let reason = Some(ExistingReason::IdempotencyKey);
        existing
            .map(|existing| started(turn, existing, reason))
            .transpose()
    }

    /// Creates the run, whose idempotency key names no other one.
    pub(super) fn create(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        triggered_by: TriggeredBy,
        taken_over: Option<TakenOver>,
    ) -> TurnResult<RunStarted> {
        let resolved = self.version.resolve(turn, namespace, &self.workflow)?;
        self.check(turn, namespace, &resolved)?;
        let start_time = self.start_time;
        let starts_at_ms = start_time.and_then(|time| time.due_ms(turn.now_ms(), WAIT_MS_MAX));
        let new_run = NewRun {
            namespace: namespace.clone(),
            run_id: self.run_id.clone(),
            definition: resolved.number,
            input: self.input.clone(),
            metadata: self.metadata.clone(),
            idempotency_key: self.idempotency_key.clone(),
            triggered_by,
            parent: None,
            nesting: 0,
            hops: 0,
            trace: self.trace,
            starts_at_ms,
            attempt: None,
            exclusion: GivenExclusion {
                target: self.target.clone(),
                locks: self.locks.clone(),
            },
            taken_over,
        };
        match create::create(turn, new_run)? {
            Creation::Run(run) => {
                quota::spend(turn, namespace, (QuotaDimension::StartsPerMinute, 1))?;
                if let Some(work) = run.first_work {
                    advance(turn, run.number, work)?;
                }
                started(turn, run.number, None)
            }
            Creation::Existing(existing) => {
                self.bind(turn, namespace, existing)?;
                started(turn, existing, Some(ExistingReason::Concurrency))
            }
        }
    }

    /// From now on, the idempotency key names a run that was used because it holds a concurrency key (W84).
    fn bind(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        existing: RunNumber,
    ) -> TurnResult<()> {
        let Some(key) = &self.idempotency_key else {
            return Ok(());
        };
        let mut run = turn.load_run(existing)?;
        if turn.is_quarantined(existing) {
            return Err(Rejection::RunQuarantined(run.record.id.clone()).into());
        }
        if run.record.start_limits.bound_keys_count == BOUND_KEYS_MAX {
            let noun = "idempotency keys for one run";
            return Err(Rejection::too_many(noun, BOUND_KEYS_MAX as usize).into());
        }
        run.record.start_limits.bound_keys_count += 1;
        turn.put_back_run(run);
        let workflow = self.workflow.clone();
        let bound = (existing, key.clone(), workflow.clone());
        turn.put::<BoundIdempotencyKeys>(&bound, namespace.clone());
        turn.put::<IdempotencyKeys>(&(namespace.clone(), workflow, key.clone()), existing);
        Ok(())
    }

    fn existing(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<Option<RunNumber>> {
        let Some(key) = &self.idempotency_key else {
            return Ok(None);
        };
        let key = (namespace.clone(), self.workflow.clone(), key.clone());
        let Some(number) = turn.get::<IdempotencyKeys>(&key)? else {
            return Ok(None);
        };
        // A bound key can outlast its run until it is swept.
        let is_kept = turn.run_record(*number)?.is_some();
        Ok(is_kept.then_some(*number))
    }

    /// Checks that the run can be started with a revision, apart from its keys and its target.
    pub(super) fn check(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        resolved: &ResolvedDefinition,
    ) -> TurnResult<()> {
        let definition = &resolved.record.definition;
        if !resolved.is_enabled {
            return Err(Rejection::WorkflowDisabled(self.workflow.clone()).into());
        }
        if definition.idempotency == Idempotency::Required && self.idempotency_key.is_none() {
            return Err(Rejection::IdempotencyKeyMissing(self.workflow.clone()).into());
        }
        if definition.input_schema.is_some() && self.input_checked_for != Some(resolved.number) {
            return Err(Rejection::InputValidationStale.into());
        }
        if let Some(key) = self
            .idempotency_key
            .as_ref()
            .filter(|key| key.is_reserved())
        {
            return Err(Rejection::IdempotencyKeyReserved(key.clone()).into());
        }
        let Some(run_id) = &self.run_id else {
            return Ok(());
        };
        if run_id.is_reserved() {
            let reserved = StartRejection::RunIdReserved(run_id.clone());
            return Err(Rejection::from(reserved).into());
        }
        if turn
            .get::<RunNames>(&(namespace.clone(), run_id.clone()))?
            .is_some()
        {
            let used = StartRejection::RunIdInUse(run_id.clone());
            return Err(Rejection::from(used).into());
        }
        Ok(())
    }
}

fn started(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    existing: Option<ExistingReason>,
) -> TurnResult<RunStarted> {
    let run = turn
        .run_record(number)?
        .expect("a run that was started is there");
    let definition = turn.pinned(run.definition)?;
    Ok(RunStarted {
        run_id: run.id.clone(),
        workflow: definition.definition.name.clone(),
        version: definition.definition.version.clone(),
        revision: definition.revision,
        existing,
    })
}
