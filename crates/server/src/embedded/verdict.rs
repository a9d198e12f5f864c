//! The report on a task (A7).

use crate::errors::Refusal;
use flotilla_engine::ids::OutcomeName;
use flotilla_engine::json::Json;
use flotilla_engine::{Body, CompleteTask, FailKind, FailTask, FailureOutcome, TaskToken};
use flotilla_wasm::{InvocationError, Report};
use tokio::task::JoinError;

/// The report on a call.
pub(super) fn of_call(token: TaskToken, called: Result<Report, Refusal>) -> Body {
    match called {
        Ok(report) => of_report(token, report),
        // The node could not read the action; a later attempt may.
        Err(refusal) => failure(
            token,
            (FailKind::Retry, FailureOutcome::Failure),
            ("unavailable", refusal.to_string()),
        ),
    }
}

/// The report on a task that this node dropped because of a bug.
pub(super) fn of_panic(token: TaskToken, error: &JoinError) -> Body {
    let message = format!("expected the node to run the task, but it failed: {error}");
    failure(
        token,
        (FailKind::Retry, FailureOutcome::Failure),
        ("panic", message),
    )
}

fn of_report(token: TaskToken, report: Report) -> Body {
    for line in report.logs.lines() {
        tracing::info!(task = token.task_id(), level = ?line.level, "{}", line.text);
    }
    let answer = match report.result {
        Ok(answer) => answer,
        Err(error) => return of_error(token, &error),
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

fn of_error(token: TaskToken, error: &InvocationError) -> Body {
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

/// The output as it is if it is JSON, otherwise as a JSON string; an empty output is `null`.
fn json_or_string(text: String) -> String {
    if text.trim().is_empty() {
        return "null".to_owned();
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
        Ok(_) => text,
        // Programs end their output with a line break, which is not part of the value.
        Err(_) => serde_json::Value::from(text.trim_end_matches(['\r', '\n'])).to_string(),
    }
}
