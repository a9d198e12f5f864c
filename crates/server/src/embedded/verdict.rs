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
        Err(refusal) => Body::FailTask(FailTask {
            token,
            kind: FailKind::Retry,
            code: Some("unavailable".to_owned()),
            message: refusal.to_string(),
            outcome: FailureOutcome::Failure,
            not_before: None,
        }),
    }
}

/// The report on a task that this node dropped because of a bug.
pub(super) fn of_panic(token: TaskToken, error: &JoinError) -> Body {
    let message = format!("expected the node to run the task, but it failed: {error}");
    Body::FailTask(FailTask {
        token,
        kind: FailKind::Retry,
        code: Some("panic".to_owned()),
        message,
        outcome: FailureOutcome::Failure,
        not_before: None,
    })
}

/// The report on a task that was cancelled.
pub(super) fn of_cancel(token: TaskToken) -> Body {
    Body::FailTask(FailTask {
        token,
        kind: FailKind::NoRetry,
        code: Some("cancelled".to_owned()),
        message: "the task was cancelled".to_owned(),
        outcome: FailureOutcome::Failure,
        not_before: None,
    })
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
            not_before: None,
        }),
        (Ok(_) | Err(_), _) => Body::FailTask(FailTask {
            token,
            kind: FailKind::NoRetry,
            code: Some("output_malformed".to_owned()),
            message: "expected output in UTF-8, but it is not".to_owned(),
            outcome: FailureOutcome::Failure,
            not_before: None,
        }),
    }
}

fn of_error(token: TaskToken, error: &InvocationError) -> Body {
    let (kind, outcome) = match error {
        InvocationError::Failed(_) => (FailKind::Retry, FailureOutcome::Failure),
        InvocationError::TimedOut { .. } => (FailKind::Retry, FailureOutcome::Timeout),
        InvocationError::Broken(_) => (FailKind::NoRetry, FailureOutcome::ExecutionFailure),
    };
    Body::FailTask(FailTask {
        token,
        kind,
        code: Some(error.code().to_owned()),
        message: error.to_string(),
        outcome,
        not_before: None,
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
