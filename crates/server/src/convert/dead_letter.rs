//! Dead letters.

use super::json;
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::ids::ActionName;
use flotilla_engine::json::Json;
use flotilla_engine::view::DeadLetterView;

/// A dead letter of an action as a message.
pub(crate) fn message(
    (letter, input): (DeadLetterView, Json),
    action: &ActionName,
) -> v1::DeadLetter {
    v1::DeadLetter {
        input: json(&input),
        ..row(letter, action)
    }
}

/// A dead letter as the row of a list: without its input.
pub(crate) fn row(letter: DeadLetterView, action: &ActionName) -> v1::DeadLetter {
    let record = letter.record;
    let (error_code, error_message) = match record.error {
        Some(error) => (error.code, error.message),
        None => Default::default(),
    };
    let (run_id, step) = match record.step {
        Some((run_id, step)) => (Some(run_id.to_string()), step.map(|step| step.to_string())),
        None => (None, None),
    };
    v1::DeadLetter {
        id: letter.action_run.to_string(),
        action: action.to_string(),
        input: Bytes::new(),
        attempts: record.attempts,
        error_code,
        error_message,
        run_id,
        step,
        failed_at_ms: record.died_at_ms,
    }
}
