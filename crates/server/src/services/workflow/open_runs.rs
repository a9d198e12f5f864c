//! Signals (W19) and cancels (W18) open runs, decides about their approvals (W61) and completes their steps (W75). Resumes
//! ended ones (W89).

use crate::access::CallContext;
use crate::convert::run as convert;
use crate::errors::Refusal;
use crate::gateway::GroupGateway;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{Comment, ScopePathText, SignalId, SignalType, StepName};
use flotilla_engine::json::Json;
use flotilla_engine::limits::NAME_BYTES_MAX;
use flotilla_engine::{
    CancelRun, Command, CompleteStep, DecideApproval, ResumeRevision, ResumeRun, SignalRun,
    StepSelector, TaskReport, reply,
};
use tokio::time::Instant;

/// The longest message of a failure, in bytes.
const MESSAGE_BYTES_MAX: usize = 4_096;
/// The outcome of a step that is completed with a failure.
const FAILURE: &str = "failure";

/// Serves `SignalRun`.
pub(super) async fn signal(
    context: &CallContext,
    request: v1::SignalRunRequest,
    deadline: Instant,
) -> Result<v1::SignalRunResponse, Refusal> {
    let body = SignalRun {
        run_id: request::run_id(request.run_id)?,
        signal_type: request::name("type", SignalType::new(request.r#type))?,
        payload: request::json(&request.payload, "payload", "{}")?,
        scope: request::optional("scope", request.scope, ScopePathText::new)?,
        signal_id: request::optional("signal_id", request.signal_id, SignalId::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body,
    };
    let reply::SignalAccepted {
        is_repeated,
        is_kept,
    } = context.gateway.submit(command, deadline).await?;
    Ok(v1::SignalRunResponse {
        existing: is_repeated,
        kept: is_kept,
    })
}

/// Serves `DecideApproval`.
pub(super) async fn decide_approval(
    context: &CallContext,
    request: v1::DecideApprovalRequest,
    deadline: Instant,
) -> Result<v1::DecideApprovalResponse, Refusal> {
    let body = DecideApproval {
        run_id: request::run_id(request.run_id)?,
        selector: StepSelector {
            step: request::optional("step", request.step, StepName::new)?,
            scope: request::optional("scope", request.scope, ScopePathText::new)?,
            visit: request.visit,
        },
        is_approved: request.approved,
        comment: request::optional("comment", request.comment, Comment::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body,
    };
    let reply: reply::ApprovalDecided = context.gateway.submit(command, deadline).await?;
    Ok(v1::DecideApprovalResponse {
        step: reply.step.to_string(),
        visit: reply.visit,
        outcome: reply.outcome.map(|outcome| outcome.to_string()),
    })
}

/// Serves `CompleteStep`.
pub(super) async fn complete_step(
    context: &CallContext,
    request: v1::CompleteStepRequest,
    deadline: Instant,
) -> Result<v1::CompleteStepResponse, Refusal> {
    let selector = StepSelector {
        step: Some(request::name("step", StepName::new(request.step.as_str()))?),
        scope: request::optional("scope", request.scope.clone(), ScopePathText::new)?,
        visit: request.visit,
    };
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: namespace,
        body: CompleteStep {
            run_id: request::run_id(request.run_id.clone())?,
            selector,
            report: step_report(&gateway, request)?,
        },
    };
    let reply: reply::StepReported = gateway.submit(command, deadline).await?;
    Ok(v1::CompleteStepResponse {
        step: reply.step.to_string(),
        visit: reply.visit,
    })
}

/// The report: an outcome with an output, or a failure with a code.
fn step_report(
    gateway: &GroupGateway<'_>,
    request: v1::CompleteStepRequest,
) -> Result<TaskReport, Refusal> {
    let (outcome, output) = match request.failure_code.as_str() {
        "" if !request.failure_message.is_empty() => {
            let message = "expected a `failure_code` with the `failure_message`, but it is empty";
            return Err(Refusal::invalid("failure_code", message));
        }
        "" => (
            request.outcome,
            request::json(&request.output, "output", "null")?,
        ),
        code if request.outcome.is_empty() && request.output.is_empty() => {
            request::at_most("failure_code", code, NAME_BYTES_MAX)?;
            request::at_most(
                "failure_message",
                &request.failure_message,
                MESSAGE_BYTES_MAX,
            )?;
            let output = Json::error(code, &request.failure_message);
            (FAILURE.to_owned(), output)
        }
        _ => {
            let message = "expected an outcome or a failure, but both are given";
            return Err(Refusal::invalid("failure_code", message));
        }
    };
    Ok(TaskReport {
        outcome: request::outcome(outcome)?,
        output,
        not_before: request::not_before(gateway, request.delay_ms, request.not_before_ms)?,
        state_patch: request::state_patch(&request.state_patch)?,
        usage: request::usage(&request.usage)?,
    })
}

/// The revision with which a run is resumed; `None` for the one with which it has stopped.
fn resume_revision(request: &v1::ResumeRunRequest) -> Result<Option<ResumeRevision>, Refusal> {
    let is_forced = request.force;
    let version = request.version.clone();
    let version = request::run_version_choice(request.latest, version, request.revision)?;
    if version.is_none() && is_forced {
        let message = "expected `latest` or `version` together with `force`, but neither is set";
        return Err(Refusal::invalid("force", message));
    }
    Ok(version.map(|version| ResumeRevision { version, is_forced }))
}

/// Serves `ResumeRun`.
pub(super) async fn resume(
    context: &CallContext,
    request: v1::ResumeRunRequest,
    deadline: Instant,
) -> Result<v1::ResumeRunResponse, Refusal> {
    let revision = resume_revision(&request)?;
    let body = ResumeRun {
        run_id: request::run_id(request.run_id)?,
        from: request::optional("from", request.from, StepName::new)?,
        revision,
        metadata: request::metadata(&request.metadata)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body,
    };
    let reply: reply::RunResumed = context.gateway.submit(command, deadline).await?;
    Ok(v1::ResumeRunResponse {
        step: reply.step.map(|step| step.to_string()).unwrap_or_default(),
        queued: reply.is_queued,
        version: reply.version.to_string(),
        revision: reply.revision,
        revised: reply.is_revised,
    })
}

/// Serves `CancelRun`.
pub(super) async fn cancel(
    context: &CallContext,
    request: v1::CancelRunRequest,
    deadline: Instant,
) -> Result<v1::CancelRunResponse, Refusal> {
    let body = CancelRun {
        run_id: request::run_id(request.run_id)?,
        reason: Some(request.reason).filter(|reason| !reason.is_empty()),
        is_forced: request.force,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body,
    };
    let reply: reply::RunCancelled = context.gateway.submit(command, deadline).await?;
    Ok(v1::CancelRunResponse {
        phase: convert::phase(reply.phase).into(),
        ended: reply.has_ended,
    })
}
