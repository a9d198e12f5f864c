//! Reports on tasks.

use super::result::Answer;
use super::{ActionResult, FailKind, HandlerError};
use crate::period::millis;
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_api::v1::worker_message::Message;
use std::time::Duration;
use tokio::task::JoinError;

/// Outcomes that only the cluster gives (W11, A4a).
const EXECUTION_LEVEL: [&str; 3] = ["target_not_found", "target_disabled", "execution_failure"];
/// The payload limit; a larger message would be refused, or even break the stream.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The limit of a patch of the state: that of a state.
const STATE_PATCH_BYTES_MAX: usize = 256 << 10;
/// How much of an error's message is kept.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A report on a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The handler returned.
    Completed {
        /// The outcome.
        outcome: String,
        /// The output, JSON.
        output: Bytes,
        /// The delay of what follows (W74).
        delay: Option<Duration>,
        /// The patch of the state, JSON; empty without one (W66).
        state_patch: Bytes,
        /// What it has used, JSON; empty for nothing (W87).
        usage: Bytes,
    },
    /// The outcome comes later (W38).
    Accepted,
    /// The handler failed.
    Failed(HandlerError),
}

impl Report {
    /// The report on a handler's result, for a task that can be accepted or not.
    pub(super) fn of(result: Result<ActionResult, HandlerError>, can_accept: bool) -> Self {
        let ActionResult {
            answer,
            delay,
            state_patch,
            usage,
        } = match result {
            Ok(result) => result,
            Err(error) => return Self::failed(error),
        };
        let (outcome, output) = match answer {
            Answer::Outcome { outcome, output } => (outcome, output),
            Answer::Accepted if can_accept => return Self::Accepted,
            Answer::Accepted => return Self::failed(not_tracked()),
        };
        if EXECUTION_LEVEL.contains(&outcome.as_str()) {
            let message =
                format!("expected an outcome that an action may give, but it is {outcome:?}");
            return Self::failed(HandlerError::no_retry(message).with_code("outcome_reserved"));
        }
        if output.len() > OUTPUT_BYTES_MAX {
            let found = output.len();
            let message = format!(
                "expected at most {OUTPUT_BYTES_MAX} bytes of output, but there are {found}"
            );
            return Self::failed(HandlerError::no_retry(message).with_code("output_too_large"));
        }
        if state_patch.len() > STATE_PATCH_BYTES_MAX {
            return Self::failed(patch_too_large(&state_patch));
        }
        Self::Completed {
            outcome,
            output,
            delay,
            state_patch,
            usage,
        }
    }

    /// The report on a job that ended, possibly because it panicked or was aborted.
    pub(super) fn of_end(ended: Result<Self, JoinError>) -> Self {
        match ended {
            Ok(report) => report,
            Err(error) if error.is_cancelled() => Self::of_cancel(),
            Err(error) => Self::of_panic(error),
        }
    }

    /// The handler panicked.
    fn of_panic(error: JoinError) -> Self {
        let message = match error.try_into_panic() {
            Ok(payload) => match payload.downcast_ref::<&str>() {
                Some(text) => (*text).to_owned(),
                None => payload
                    .downcast::<String>()
                    .map_or_else(|_| String::new(), |text| *text),
            },
            Err(error) => error.to_string(),
        };
        let message = format!("expected the handler to return, but it panicked: {message}");
        Self::failed(HandlerError::retry(message).with_code("panic"))
    }

    /// The handler exceeded the worker's own limit (A4a).
    pub(super) fn of_timeout(limit: Duration) -> Self {
        let limit = limit.as_millis();
        let message = format!("expected the handler to end within {limit} ms, but it did not");
        Self::failed(HandlerError::no_retry(message).with_code("handler_timeout"))
    }

    /// The worker stopped before the handler ended (A4a).
    pub(super) fn of_stop() -> Self {
        let message = "expected the handler to end, but its worker was stopped first";
        Self::failed(HandlerError::retry(message).with_code("worker_stopped"))
    }

    /// The task was cancelled, and its handler was dropped (W54).
    fn of_cancel() -> Self {
        Self::failed(HandlerError::no_retry("the task was cancelled").with_code("cancelled"))
    }

    /// The cluster refused the outcome or output as malformed.
    pub(super) fn of_refusal(code: &str, message: &str) -> Self {
        Self::failed(HandlerError::no_retry(message).with_code(code))
    }

    /// The message that carries the report.
    pub(super) fn message(&self, task_token: &str) -> Message {
        let task_token = task_token.to_owned();
        match self {
            Self::Completed {
                outcome,
                output,
                delay,
                state_patch,
                usage,
            } => Message::Completion(v1::TaskCompletion {
                task_token,
                outcome: outcome.clone(),
                output: output.clone(),
                delay_ms: delay.map_or(0, millis),
                not_before_ms: 0,
                state_patch: state_patch.clone(),
                usage: usage.clone(),
            }),
            Self::Accepted => Message::Acceptance(v1::TaskAcceptance { task_token }),
            Self::Failed(error) => Message::Failure(v1::TaskFailure {
                task_token,
                kind: kind(error.kind).into(),
                code: error.code.clone(),
                message: error.message.clone(),
                delay_ms: error.delay.map_or(0, millis),
                not_before_ms: 0,
                state_patch: error.state_patch.clone(),
                usage: error.usage.clone().into(),
            }),
        }
    }

    fn failed(mut error: HandlerError) -> Self {
        if error.state_patch.len() > STATE_PATCH_BYTES_MAX {
            // Why the handler has failed counts.
            error.state_patch = Bytes::new();
        }
        error
            .message
            .truncate(error.message.floor_char_boundary(MESSAGE_BYTES_MAX));
        Self::Failed(error)
    }
}

fn patch_too_large(patch: &Bytes) -> HandlerError {
    let found = patch.len();
    let message = format!(
        "expected a state patch of at most {STATE_PATCH_BYTES_MAX} bytes, but it has {found}"
    );
    HandlerError::retry(message).with_code("bad_state")
}

/// The step does not wait for a report.
fn not_tracked() -> HandlerError {
    let message = "expected an outcome, but the task was accepted: only a step or an executor with \
                   `tracking: {mode: async}` can have its outcome later";
    HandlerError::no_retry(message).with_code("task_not_tracked")
}

fn kind(kind: FailKind) -> v1::FailKind {
    match kind {
        FailKind::Retry => v1::FailKind::Retry,
        FailKind::NoRetry => v1::FailKind::NoRetry,
        FailKind::NonRetryable => v1::FailKind::NonRetryable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failure(report: Report) -> (FailKind, String) {
        match report {
            Report::Failed(error) => (error.kind, error.code),
            other => panic!("expected a failure, but it is {other:?}"),
        }
    }

    fn done(result: Result<ActionResult, HandlerError>) -> Report {
        Report::of(result, false)
    }

    #[test]
    fn a_task_that_cannot_wait_for_its_outcome_fails_when_it_is_accepted() {
        let report = Report::of(Ok(ActionResult::accepted()), true);
        assert_eq!(report, Report::Accepted);
        let (kind, code) = failure(done(Ok(ActionResult::accepted())));
        assert_eq!(
            (kind, code.as_str()),
            (FailKind::NoRetry, "task_not_tracked")
        );
    }

    #[test]
    fn an_execution_level_outcome_fails_the_task() {
        for outcome in EXECUTION_LEVEL {
            let report = done(Ok(ActionResult::named(outcome, json!(1))));
            assert_eq!(
                failure(report),
                (FailKind::NoRetry, "outcome_reserved".to_owned())
            );
        }
        assert!(matches!(
            done(Ok(ActionResult::named("failure", json!(1)))),
            Report::Completed { .. }
        ));
    }

    #[test]
    fn an_output_over_the_bound_fails_the_task() {
        let report = done(Ok(ActionResult::success("x".repeat(OUTPUT_BYTES_MAX))));
        assert_eq!(
            failure(report),
            (FailKind::NoRetry, "output_too_large".to_owned())
        );
    }

    #[test]
    fn a_state_patch_over_the_bound_fails_the_attempt() {
        let patch = "x".repeat(STATE_PATCH_BYTES_MAX);
        let completed = ActionResult::success(json!(1)).with_state_patch(patch.clone());
        let expected = (FailKind::Retry, "bad_state".to_owned());
        assert_eq!(failure(done(Ok(completed))), expected);
        let failed = HandlerError::non_retryable("no").with_state_patch(patch);
        let report = done(Err(failed));
        assert_eq!(report, done(Err(HandlerError::non_retryable("no"))));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let Report::Failed(error) = done(Err(HandlerError::retry("ä".repeat(4000)))) else {
            panic!("expected a failure");
        };
        assert_eq!(error.message.len(), MESSAGE_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_handler_that_panics_or_is_dropped_fails_the_task() {
        let panicking = tokio::spawn(async { panic!("a bug") });
        let report = Report::of_end(panicking.await);
        assert_eq!(failure(report), (FailKind::Retry, "panic".to_owned()));
        let dropped = tokio::spawn(std::future::pending());
        dropped.abort();
        let report = Report::of_end(dropped.await);
        assert_eq!(failure(report), (FailKind::NoRetry, "cancelled".to_owned()));
    }

    #[test]
    fn any_error_is_one_to_retry_and_names_its_causes() {
        let error: HandlerError = std::io::Error::other("disk full").into();
        assert_eq!(error, HandlerError::retry("disk full"));
    }
}
