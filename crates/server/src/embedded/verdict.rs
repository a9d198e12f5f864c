//! The report on a task (A7).

use crate::errors::Refusal;
use crate::request;
use flotilla_engine::ids::OutcomeName;
use flotilla_engine::json::{self, Json};
use flotilla_engine::limits::JSON_DEPTH_MAX;
use flotilla_engine::{Body, CompleteTask, DueTime, FailKind, FailTask, FailureOutcome, TaskToken};
use flotilla_wasm::{InvocationError, Report};
use serde_json::value::RawValue;
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
            state_patch: None,
            usage: None,
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
        state_patch: None,
        usage: None,
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
        state_patch: None,
        usage: None,
    })
}

fn of_report(token: TaskToken, report: Report) -> Body {
    let requests = Requests::read(report.requests);
    let answer = match report.result {
        Ok(answer) => answer,
        // Why the action has failed counts, not that its patch cannot be used.
        Err(error) => return of_error(token, &error, requests.unwrap_or_default()),
    };
    let requests = match requests {
        Ok(requests) => requests,
        Err((code, message)) => return of_unusable(token, code, message),
    };
    let output = String::from_utf8(answer.output).map(json_or_string);
    let output = output
        .ok()
        .filter(|text| json::depth(text) <= JSON_DEPTH_MAX);
    let outcome = OutcomeName::new(answer.outcome.to_string());
    match (output, outcome) {
        (Some(output), Ok(outcome)) => Body::CompleteTask(CompleteTask {
            token,
            outcome,
            output: Json::from_checked(output),
            not_before: requests.not_before,
            state_patch: requests.state_patch,
            usage: requests.usage,
        }),
        (Some(_) | None, _) => Body::FailTask(FailTask {
            token,
            kind: FailKind::NoRetry,
            code: Some("output_malformed".to_owned()),
            message: format!(
                "expected output in UTF-8 that nests at most {JSON_DEPTH_MAX} levels deep, but it is not"
            ),
            outcome: FailureOutcome::Failure,
            not_before: None,
            state_patch: None,
            usage: None,
        }),
    }
}

/// What an action asks for beside its result, as the cluster takes it.
#[derive(Default)]
struct Requests {
    not_before: Option<DueTime>,
    state_patch: Option<Json>,
    usage: Option<Json>,
}

impl Requests {
    /// # Errors
    /// The code, and why the patch of the state or the usage cannot be used.
    fn read(requests: flotilla_wasm::Requests) -> Result<Self, (&'static str, String)> {
        let ms = requests.delay_ms;
        let state_patch = request::state_patch(requests.state_patch.trim_ascii());
        let usage = request::usage(requests.usage.trim_ascii());
        Ok(Self {
            not_before: (ms > 0).then_some(DueTime::After { ms }),
            // As in the cluster, the attempt fails (W66).
            state_patch: state_patch.map_err(|refusal| ("bad_state", refusal.to_string()))?,
            usage: usage.map_err(|refusal| ("usage_invalid", refusal.to_string()))?,
        })
    }
}

/// The attempt has asked for something that cannot be.
fn of_unusable(token: TaskToken, code: &str, message: String) -> Body {
    Body::FailTask(FailTask {
        token,
        kind: FailKind::Retry,
        code: Some(code.to_owned()),
        message,
        outcome: FailureOutcome::Failure,
        not_before: None,
        state_patch: None,
        usage: None,
    })
}

fn of_error(token: TaskToken, error: &InvocationError, requests: Requests) -> Body {
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
        not_before: requests.not_before,
        state_patch: requests.state_patch,
        usage: requests.usage,
    })
}

/// The output as it is if it is JSON, otherwise as a JSON string; an empty output is `null`.
fn json_or_string(text: String) -> String {
    if text.trim().is_empty() {
        return "null".to_owned();
    }
    match serde_json::from_str::<&RawValue>(&text) {
        Ok(_) => text,
        // Programs end their output with a line break, which is not part of the value.
        Err(_) => serde_json::Value::from(text.trim_end_matches(['\r', '\n'])).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(patch: &str) -> Result<Option<String>, &'static str> {
        let requests = flotilla_wasm::Requests {
            state_patch: patch.as_bytes().to_vec(),
            ..flotilla_wasm::Requests::default()
        };
        let read = Requests::read(requests).map_err(|(code, _)| code)?;
        Ok(read.state_patch.map(|patch| patch.as_str().to_owned()))
    }

    #[test]
    fn a_usage_has_few_numbers_or_fails_the_attempt() {
        let used = |text: &str| {
            let requests = flotilla_wasm::Requests {
                usage: text.as_bytes().to_vec(),
                ..flotilla_wasm::Requests::default()
            };
            let read = Requests::read(requests).map_err(|(code, _)| code)?;
            Ok(read.usage.map(|usage| usage.as_str().to_owned()))
        };
        assert_eq!(used(""), Ok(None));
        let usage = "{\"cost\": 0.5, \"tokens\": 7, \"tokens\": 8}";
        assert_eq!(
            used(usage),
            Ok(Some("{\"cost\":0.5,\"tokens\":8}".to_owned()))
        );
        let many = |count: usize| {
            let fields: Vec<String> = (0..count).map(|one| format!("\"n{one}\":1")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert!(used(&many(16)).is_ok());
        let long = format!("{{\"{}\":1}}", "n".repeat(65));
        for refused in [
            "[1]",
            "{\"a\":\"b\"}",
            "{\"\":1}",
            "{\"a\":1e999}",
            &many(17),
            &long,
        ] {
            assert_eq!(used(refused), Err("usage_invalid"), "{refused}");
        }
    }

    #[test]
    fn a_state_patch_is_json_or_fails_the_attempt() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read(" {\"a\": 1} "), Ok(Some("{\"a\": 1}".to_owned())));
        assert!(read("{a: 1}").is_err());
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(read(&nested(JSON_DEPTH_MAX)).is_ok());
        assert!(read(&nested(JSON_DEPTH_MAX + 1)).is_err());
        assert!(read(&nested(40_000)).is_err());
    }
}
