//! Starts a run (W4, W20).
//!
//! The engine must not call a schema library (design rule 1), so the input is checked here and the
//! command names the definition that it was checked against. The check uses what this node has
//! applied. If the engine finds that another definition is the latest by now, or the input fails,
//! the check is repeated with a linearizable read. So a start costs no read barrier unless
//! something changed.
//!
//! A start whose input fails is still proposed, without a verdict: the same request may have been
//! accepted before (design rule 9), or its key may name a run (W20), and both take precedence over
//! a refusal. Only the engine can decide that; for a new run, it requires the verdict.

use super::wait;
use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::START_TRIES_MAX;
use crate::request::{self, DueFields};
use crate::span;
use flotilla_api::v1;
use flotilla_dsl::expression::compile_lock;
use flotilla_engine::definition::Lock;
use flotilla_engine::ids::{IdempotencyKey, Namespace, RunId, RunNumber, WorkflowName};
use flotilla_engine::limits::{LOCKS_MAX, WAIT_MS_MAX};
use flotilla_engine::reply::{ExistingReason, RunStarted};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, SchemaOf};
use flotilla_engine::{
    Command, DefinitionNumber, Operation, Rejection, RequestId, RetryFrom, RetryRun, StartRun,
    TraceContext, VersionChoice,
};
use flotilla_leader::Schema;
use tokio::time::Instant;

/// A start whose request is well-formed.
pub(super) struct Start {
    pub(super) request_id: RequestId,
    pub(super) namespace: Namespace,
    pub(super) run: StartRun,
    /// The ended run that it replaces.
    pub(super) retry_of: Option<RetriedRun>,
}

/// An ended run that is retried (W90).
#[derive(Clone)]
pub(super) struct RetriedRun {
    pub(super) run_id: RunId,
    pub(super) number: RunNumber,
    /// Where the new run begins; `None` for the first step.
    pub(super) from: Option<RetryFrom>,
}

/// The result of validating a start's input.
enum Verdict {
    /// There is no schema, or no definition: the engine decides.
    Unasked,
    /// The input satisfies the schema of this definition.
    Satisfied(DefinitionNumber),
    /// The input violates the schema, for this reason.
    Violated(String),
}

/// Serves `StartRun`.
pub(super) async fn start(
    context: &CallContext,
    request: v1::StartRunRequest,
    trace: Option<TraceContext>,
    deadline: Instant,
) -> Result<v1::StartRunResponse, Refusal> {
    let is_waiting = request.wait;
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let mut start = parse(request, namespace, gateway.replica().now_ms())?;
    start.run.trace = trace;
    let started = Starter { context }.begin(&mut start, deadline).await?;
    let run_id = started.run_id.clone();
    let mut answer = answer(started);
    if is_waiting {
        let end = wait::until_ended(context, &start.namespace, &run_id, deadline).await?;
        answer.end = end.map(convert::run::status_change);
    }
    Ok(answer)
}
fn parse(
    request: v1::StartRunRequest,
    namespace: Namespace,
    now_ms: u64,
) -> Result<Start, Refusal> {
    let start_time = DueFields {
        at: ("start_at_ms", request.start_at_ms),
        after: ("start_after_ms", request.start_after_ms),
    };
    let start_time = start_time.read(now_ms, WAIT_MS_MAX)?;
    let version = request::version_choice(request.version, request.revision)?;
    Ok(Start {
        request_id: request::request_id(&request.request_id)?,
        namespace,
        retry_of: None,
        run: StartRun {
            workflow: request::name("workflow", WorkflowName::new(request.workflow))?,
            version: version.unwrap_or(VersionChoice::Latest),
            input: request::json(&request.input, "input", "{}")?,
            input_checked_for: None,
            idempotency_key: request::optional(
                "idempotency_key",
                request.idempotency_key,
                IdempotencyKey::new,
            )?,
            run_id: request::optional("run_id", request.run_id, RunId::new)?,
            trace: None,
            start_time,
            metadata: request::metadata(&request.metadata)?,
            target: request::target(request.target)?,
            locks: locks(&request.locks)?,
        },
    })
}

/// The compiled locks; `None` for those of the definition (W85).
pub(super) fn locks(patterns: &[String]) -> Result<Option<Vec<Lock>>, Refusal> {
    if patterns.is_empty() {
        return Ok(None);
    }
    if patterns.len() > LOCKS_MAX {
        let count = patterns.len();
        let message = format!("expected at most {LOCKS_MAX} locks, but the request has {count}");
        return Err(Refusal::invalid("locks", message));
    }
    let locks = patterns.iter().enumerate().map(|(position, pattern)| {
        let field = format!("locks[{position}]");
        compile_lock(pattern)
            .map_err(|message| Refusal::invalid(&field, format!("{field}: {message}")))
    });
    locks.collect::<Result<_, _>>().map(Some)
}

pub(super) fn answer(started: RunStarted) -> v1::StartRunResponse {
    v1::StartRunResponse {
        run_id: started.run_id.to_string(),
        workflow: started.workflow.to_string(),
        version: started.version.to_string(),
        revision: started.revision,
        existing: started.existing.is_some(),
        end: None,
        existing_reason: match started.existing {
            None => v1::ExistingReason::Unspecified,
            Some(ExistingReason::IdempotencyKey) => v1::ExistingReason::IdempotencyKey,
            Some(ExistingReason::Concurrency) => v1::ExistingReason::Concurrency,
        }
        .into(),
    }
}

impl Start {
    fn command<O: Operation<Scope = Namespace>>(&self, body: O) -> Command<O> {
        Command {
            request_id: Some(self.request_id),
            scope: self.namespace.clone(),
            body,
        }
    }

    /// The definition that the start would use (W5).
    fn definition(&self, reader: &dyn Reader) -> Result<Option<DefinitionNumber>, StoreError> {
        let run = &self.run;
        view::definition_number(reader, &self.namespace, &run.workflow, &run.version)
    }
}

/// Starts runs for a caller.
pub(super) struct Starter<'c> {
    pub(super) context: &'c CallContext,
}

impl Starter<'_> {
    /// Submits the start.
    pub(super) async fn begin(
        &self,
        start: &mut Start,
        deadline: Instant,
    ) -> Result<RunStarted, Refusal> {
        let mut freshness = Freshness::Stale;
        for _ in 0..START_TRIES_MAX {
            let verdict = match self.judge(start, freshness, deadline).await {
                // A node that has just started has no state yet; the cluster does.
                Err(_) if freshness == Freshness::Stale => {
                    freshness = Freshness::Linearizable;
                    continue;
                }
                verdict => verdict?,
            };
            let (input_checked_for, violation) = match verdict {
                Verdict::Unasked => (None, None),
                Verdict::Satisfied(definition) => (Some(definition), None),
                Verdict::Violated(_) if freshness == Freshness::Stale => {
                    freshness = Freshness::Linearizable;
                    continue;
                }
                Verdict::Violated(reason) => (None, Some(reason)),
            };
            start.run.input_checked_for = input_checked_for;
            match self.propose(start, deadline).await? {
                Err(Rejection::InputValidationStale) => match violation {
                    Some(reason) => return Err(Rejection::InputInvalid(reason).into()),
                    None => freshness = Freshness::Linearizable,
                },
                result => {
                    let started = result?;
                    span::note_run(started.run_id.as_str());
                    return Ok(started);
                }
            }
        }
        Err(Rejection::InputValidationStale.into())
    }

    async fn propose(
        &self,
        start: &Start,
        deadline: Instant,
    ) -> Result<Result<RunStarted, Rejection>, Refusal> {
        let gateway = self.context.gateway.of(&start.namespace);
        let run = start.run.clone();
        match start.retry_of.clone() {
            None => gateway.propose(start.command(run), deadline).await,
            Some(retried) => {
                let retry = RetryRun {
                    run_id: retried.run_id,
                    run: retried.number,
                    from: retried.from,
                    start: run,
                };
                gateway.propose(start.command(retry), deadline).await
            }
        }
    }

    async fn judge(
        &self,
        start: &Start,
        freshness: Freshness,
        deadline: Instant,
    ) -> Result<Verdict, Refusal> {
        let look_up = |reader: &dyn Reader| start.definition(reader);
        let definition = self
            .context
            .gateway
            .of(&start.namespace)
            .read(freshness, deadline, look_up)
            .await?;
        let Some(definition) = definition else {
            return Ok(Verdict::Unasked);
        };
        let Some(schema) = self.schema(&start.namespace, definition).await? else {
            return Ok(Verdict::Unasked);
        };
        Ok(
            match self
                .context
                .schemas
                .check(schema, start.run.input.clone())
                .await?
            {
                Ok(()) => Verdict::Satisfied(definition),
                Err(violation) => Verdict::Violated(violation.to_string()),
            },
        )
    }

    async fn schema(
        &self,
        namespace: &Namespace,
        definition: DefinitionNumber,
    ) -> Result<Schema, Refusal> {
        if let Some(known) = self.context.schemas.find(definition, SchemaOf::Input) {
            return Ok(known);
        }
        let look_up = |reader: &dyn Reader| view::definition(reader, definition);
        match self.context.gateway.of(namespace).read_here(look_up)? {
            Some(record) => {
                let text = record.definition.input_schema;
                let schemas = &self.context.schemas;
                Ok(schemas.compile(definition, SchemaOf::Input, text).await?)
            }
            None => Ok(None),
        }
    }
}
