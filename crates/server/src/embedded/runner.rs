//! Running one WASM task.

use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, Namespace, OutcomeName};
use flotilla_engine::json::Json;
use flotilla_engine::tables::{ActionKind, ActionRecord, WasmLimits};
use flotilla_engine::{Body, CompleteTask, FailKind, FailTask, FailureOutcome, TaskToken, view};
use flotilla_wasm::{
    Invocation, InvocationError, Limits, ModuleDigest, NoStore, Report, Sandbox, SandboxError,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Tasks that one node runs at once: WASM is bound by the processor.
pub(super) fn concurrency() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get)
}

/// How long the node may take to learn what the cluster knows of an action.
const READ_DEADLINE: Duration = Duration::from_secs(10);

/// The sandbox of this node.
pub(super) struct Runner {
    context: Arc<Context>,
    sandbox: Arc<Sandbox>,
    slots: Semaphore,
}

impl Runner {
    pub(super) fn new(context: Arc<Context>) -> Result<Self, SandboxError> {
        let slots = Semaphore::new(concurrency());
        Ok(Self {
            context,
            sandbox: Arc::new(Sandbox::new()?),
            slots,
        })
    }

    /// Runs a task to its end and says what is to be reported.
    pub(super) async fn run(
        &self,
        namespace: &Namespace,
        (token, task): (TaskToken, v1::TaskAssignment),
    ) -> Body {
        match self.try_run(namespace, task).await {
            Ok(report) => to_body(token, report),
            // The node could not ask the cluster: a later attempt may.
            Err(refusal) => failure(
                token,
                (FailKind::Retry, FailureOutcome::Failure),
                ("unavailable", refusal.to_string()),
            ),
        }
    }

    async fn try_run(
        &self,
        namespace: &Namespace,
        task: v1::TaskAssignment,
    ) -> Result<Report, Refusal> {
        // A closed semaphore would mean that the runner is gone, and with it this call.
        let _slot = self.slots.acquire().await;
        let name = crate::request::name(ActionName::new(task.action))?;
        let record = self.record(namespace, &name).await?;
        let (digest, limits) = settings(&record);
        let sandbox = self.sandbox.clone();
        let context = self.context.clone();
        let namespace = namespace.clone();
        let run = move || {
            let module = || {
                let (namespace, name) = (namespace.clone(), name.clone());
                let read = context
                    .gateway
                    .read_here(move |reader| view::module(reader, &namespace, &name));
                read.ok()
                    .flatten()
                    .filter(|module| module.digest == digest)
                    .map(|module| module.bytes)
            };
            sandbox.invoke(Invocation {
                digest: ModuleDigest(digest),
                module: &module,
                input: &task.input,
                limits,
                host: Box::new(NoStore),
            })
        };
        tokio::task::spawn_blocking(run)
            .await
            .map_err(|error| Refusal::internal(format!("the sandbox failed: {error}")))
    }

    /// The action as the cluster knows it now: this node may be behind the leader that assigned.
    async fn record(
        &self,
        namespace: &Namespace,
        name: &ActionName,
    ) -> Result<Option<ActionRecord>, Refusal> {
        let (namespace, name) = (namespace.clone(), name.clone());
        let read = move |reader: &dyn flotilla_engine::store::Reader| {
            view::action(reader, &namespace, &name)
        };
        let deadline = Instant::now() + READ_DEADLINE;
        let action = self
            .context
            .gateway
            .read(Freshness::Linearizable, deadline, read)
            .await?;
        Ok(action.map(|action| action.record))
    }
}

/// The module and limits of an action. One that was deleted, or is no WASM action any more, has no
/// module: the sandbox then answers `execution_failure`.
fn settings(record: &Option<ActionRecord>) -> ([u8; 32], Limits) {
    let none = ([0; 32], Limits::default());
    let Some(record) = record else { return none };
    let ActionKind::Wasm { digest, limits } = &record.kind else {
        return none;
    };
    let WasmLimits {
        memory_bytes_max,
        output_bytes_max,
    } = *limits;
    let limits = Limits::new(memory_bytes_max, output_bytes_max, record.timeout_ms);
    (*digest, limits.unwrap_or_default())
}

/// What is reported of a call (A7).
fn to_body(token: TaskToken, report: Report) -> Body {
    for line in report.logs.lines() {
        tracing::info!(task = token.task_id(), level = ?line.level, "{}", line.text);
    }
    let answer = match report.result {
        Ok(answer) => answer,
        Err(error) => return failed(token, &error),
    };
    let output = String::from_utf8(answer.output).map(json_or_string);
    let outcome = OutcomeName::new(answer.outcome.to_string());
    match (output, outcome) {
        (Ok(output), Ok(outcome)) => Body::CompleteTask(CompleteTask {
            token,
            outcome,
            output: Json::from_checked(output),
        }),
        (Ok(_) | Err(_), _) => failure(
            token,
            (FailKind::NoRetry, FailureOutcome::Failure),
            (
                "output_malformed",
                "expected output in UTF-8, but it is not".to_owned(),
            ),
        ),
    }
}

fn failed(token: TaskToken, error: &InvocationError) -> Body {
    let kind = match error {
        InvocationError::Failed(_) => (FailKind::Retry, FailureOutcome::Failure),
        InvocationError::TimedOut { .. } => (FailKind::Retry, FailureOutcome::Timeout),
        InvocationError::Broken(_) => (FailKind::NoRetry, FailureOutcome::ExecutionFailure),
    };
    failure(token, kind, (error.code(), error.to_string()))
}

fn failure(
    token: TaskToken,
    (kind, outcome): (FailKind, FailureOutcome),
    (code, message): (&str, String),
) -> Body {
    Body::FailTask(FailTask {
        token,
        kind,
        code: Some(code.to_owned()),
        message,
        outcome,
    })
}

/// The output as it is when it is JSON, else as a JSON string; nothing is `null`.
fn json_or_string(text: String) -> String {
    if text.trim().is_empty() {
        return "null".to_owned();
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
        Ok(_) => text,
        Err(_) => serde_json::Value::String(text).to_string(),
    }
}
