//! Retries a run that has ended (W90).
//!
//! The new run begins with what the ended run began with. That never changes, so it is read before proposal. The read is
//! linearizable, since a deleted run's id can be used again; the engine checks the number of the run.

use super::start::{RetriedRun, Start, Starter, answer, locks};
use crate::access::CallContext;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{IdempotencyKey, Namespace, RunId, StepName};
use flotilla_engine::json::{Json, merge_patch};
use flotilla_engine::limits::PAYLOAD_BYTES_MAX;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, RunOrigin};
use flotilla_engine::{Rejection, RetryFrom, StartRun, TraceContext, VersionChoice};
use tokio::time::Instant;

const PATCH: &str = "input_patch";

/// Serves `RetryRun`.
pub(super) async fn retry(
    context: &CallContext,
    request: v1::RetryRunRequest,
    trace: Option<TraceContext>,
    deadline: Instant,
) -> Result<v1::StartRunResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let run_id = request::run_id(request.run_id.clone())?;
    let origin = origin(context, &namespace, &run_id, deadline).await?;
    let input = patched(&request.input_patch, origin.input.clone()).await?;
    let mut start = Start {
        request_id: request::request_id(&request.request_id)?,
        namespace,
        retry_of: Some(RetriedRun {
            run_id,
            number: origin.number,
            from: from(&request)?,
        }),
        run: start(request, origin, input)?,
    };
    start.run.trace = trace;
    let started = Starter { context }.begin(&mut start, deadline).await?;
    Ok(answer(started))
}

/// The step with which the new run begins.
fn from(request: &v1::RetryRunRequest) -> Result<Option<RetryFrom>, Refusal> {
    let step = request::optional("from", request.from.clone(), StepName::new)?;
    if step.is_none() && request.force {
        let message = "expected a step to begin with, but the request has only `force`";
        return Err(Refusal::invalid("force", message));
    }
    Ok(step.map(|step| RetryFrom {
        step,
        is_forced: request.force,
    }))
}

async fn origin(
    context: &CallContext,
    namespace: &Namespace,
    run_id: &RunId,
    deadline: Instant,
) -> Result<RunOrigin, Refusal> {
    let gateway = context.gateway.of(namespace);
    let key = (namespace.clone(), run_id.clone());
    let look_up = move |reader: &dyn Reader| view::run_origin(reader, &key.0, &key.1);
    let found = gateway
        .scan(Freshness::Linearizable, deadline, look_up)
        .await?;
    found.ok_or_else(|| Rejection::RunNotFound(run_id.clone()).into())
}

/// The start of the new run. Target and locks that the definition computes are computed again.
fn start(
    request: v1::RetryRunRequest,
    origin: RunOrigin,
    input: Json,
) -> Result<StartRun, Refusal> {
    let metadata = request::metadata(&request.metadata)?;
    let version = request::run_version_choice(request.latest, request.version, request.revision)?;
    Ok(StartRun {
        version: version.unwrap_or(VersionChoice::Definition(origin.definition)),
        input,
        workflow: origin.workflow,
        input_checked_for: None,
        idempotency_key: request::optional(
            "idempotency_key",
            request.idempotency_key,
            IdempotencyKey::new,
        )?,
        run_id: request::optional("new_run_id", request.new_run_id, RunId::new)?,
        trace: None,
        start_time: None,
        metadata: metadata.or(origin.metadata),
        target: origin.target,
        locks: locks(&origin.locks)?,
    })
}

/// The input after the patch.
async fn patched(patch: &[u8], input: Json) -> Result<Json, Refusal> {
    if patch.is_empty() {
        return Ok(input);
    }
    let patch = request::json(patch, PATCH, "{}")?;
    // Both can be large.
    let merged = tokio::task::spawn_blocking(move || {
        merge_patch(input.as_str().trim(), patch.as_str().trim())
    });
    let input = merged
        .await
        .map_err(|error| Refusal::internal(format!("the patch of an input failed: {error}")))?;
    let bytes = input.len();
    if bytes > PAYLOAD_BYTES_MAX {
        let message = format!(
            "expected an input of at most {PAYLOAD_BYTES_MAX} bytes, but with the patch it has {bytes}"
        );
        return Err(Refusal::too_large(message).at(PATCH));
    }
    Ok(Json::from_checked(input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::DefinitionNumber;
    use flotilla_engine::ids::{RunNumber, WorkflowName};

    fn origin() -> RunOrigin {
        RunOrigin {
            number: RunNumber(3),
            workflow: WorkflowName::new("order").unwrap(),
            definition: DefinitionNumber(7),
            input: Json::from_checked(r#"{"id":1,"size":2}"#),
            metadata: None,
            target: Some("vm-1".to_owned()),
            locks: vec!["^vm-".to_owned()],
        }
    }

    #[test]
    fn without_more_it_begins_as_the_run_did() {
        let input = origin().input;
        let start = start(v1::RetryRunRequest::default(), origin(), input).unwrap();
        assert_eq!(
            start.version,
            VersionChoice::Definition(DefinitionNumber(7))
        );
        assert_eq!(start.target, origin().target);
        assert_eq!(start.locks.unwrap()[0].pattern, "^vm-");
    }

    #[tokio::test]
    async fn a_patch_changes_the_input_within_its_bound() {
        let patch = br#" {"size": null, "id": 3} "#;
        let input = patched(patch, origin().input).await.unwrap();
        assert_eq!(input.as_str(), r#"{"id":3}"#);
        let text = "x".repeat(PAYLOAD_BYTES_MAX - 12);
        let large = format!("{{\"text\":\"{text}\"}}");
        let refusal = patched(large.as_bytes(), origin().input).await;
        let refusal = refusal.unwrap_err().to_string();
        assert!(refusal.contains("with the patch"), "{refusal}");
    }
}
