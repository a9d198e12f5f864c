//! Converts dead letters to messages.

use super::json;
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::ids::ActionName;
use flotilla_engine::json::Json;
use flotilla_engine::view::DeadLetterView;

/// Converts a dead letter of an action.
pub(crate) fn message(
    dead_letter: DeadLetterView,
    input: Json,
    action: &ActionName,
) -> v1::DeadLetter {
    v1::DeadLetter {
        input: json(&input),
        ..row(dead_letter, action)
    }
}

/// Converts a dead letter to a list row, without its input.
pub(crate) fn row(dead_letter: DeadLetterView, action: &ActionName) -> v1::DeadLetter {
    let record = dead_letter.record;
    let (error_code, error_message) = match record.error {
        Some(error) => (error.code, error.message),
        None => Default::default(),
    };
    let (run_id, step) = match record.step {
        Some((run_id, step)) => (Some(run_id.to_string()), step.map(|step| step.to_string())),
        None => (None, None),
    };
    v1::DeadLetter {
        id: dead_letter.action_run.to_string(),
        action: action.to_string(),
        input: Bytes::new(),
        attempts: record.attempts,
        error_code,
        error_message,
        run_id,
        step,
        failed_at_ms: record.died_at_ms,
        redacted: false,
    }
}
