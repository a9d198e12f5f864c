//! How a program's end is interpreted (A10).

use super::captured::OUTPUT_BYTES_MAX;
use super::result_files::Written;
use crate::period;
use crate::views;
use bytes::Bytes;
use flotilla_client::{ActionResult, HandlerError};
use serde_json::{Number, Value};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Names in what an attempt has used (W87).
const USAGE_NAMES_MAX: usize = 16;

const SUCCESS: i32 = 0;
const NON_RETRYABLE: i32 = 65;
const PENDING: i32 = 75;
const ACCEPTED: i32 = 76;

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The program ended by itself.
    ByItself {
        /// Its exit code, or the signal that killed it.
        status: ExitStatus,
        /// Its output on stdout.
        output: Vec<u8>,
        /// The last line that it wrote to stderr.
        last_line: Option<String>,
        /// What it wrote to its files.
        written: Written,
    },
    /// It wrote more than the maximum payload and was killed.
    TooMuchOutput,
}

/// The result to report.
///
/// # Errors
/// How the task failed (A5).
pub(super) fn of(ended: Ended) -> Result<ActionResult, HandlerError> {
    let Ended::ByItself {
        status,
        output,
        last_line,
        written,
    } = ended
    else {
        let message = format!(
            "expected at most {OUTPUT_BYTES_MAX} bytes on stdout, but the program wrote more"
        );
        return Err(HandlerError::no_retry(message).with_code("output_too_large"));
    };
    let message = || last_line.unwrap_or_else(|| ending(status));
    let (patch, delay) = (state_patch(&written.state_patch), delay(&written.delay));
    let usage = usage(&written.usage);
    let done = |outcome: String| -> Result<ActionResult, HandlerError> {
        let result = ActionResult::named_json(outcome, json(&output)?);
        let result = result.with_state_patch_json(patch.clone()?);
        let result = result.with_usage_json(usage.clone()?);
        Ok(match delay.clone()? {
            Some(delay) => result.with_delay(delay),
            None => result,
        })
    };
    // Why the program has failed counts, not that its files cannot be used.
    let failed = |error: HandlerError| HandlerError {
        delay: delay.clone().unwrap_or_default(),
        usage: Vec::from(usage.clone().unwrap_or_default()).into(),
        ..error.with_state_patch_json(patch.clone().unwrap_or_default())
    };
    match status.code() {
        Some(SUCCESS) => done(outcome_name(&written.outcome)?),
        Some(PENDING) => done("pending".to_owned()),
        Some(ACCEPTED) => Ok(ActionResult::accepted()),
        Some(NON_RETRYABLE) => Err(failed(HandlerError::non_retryable(message()))),
        _ => Err(failed(HandlerError::retry(message()))),
    }
}

/// The patch of the state, if the program wrote one. It fails the attempt otherwise, as in the cluster (W66).
fn state_patch(bytes: &[u8]) -> Result<Bytes, HandlerError> {
    let text = bytes.trim_ascii();
    if text.is_empty() || views::is_json(text) {
        return Ok(Bytes::copy_from_slice(text));
    }
    let message = "expected the file FLO_STATE_PATCH to hold a JSON object of at most 256 KiB, but it holds something else";
    Err(HandlerError::retry(message).with_code("bad_state"))
}

/// What the program has used, if it wrote that (W87).
fn usage(bytes: &[u8]) -> Result<Bytes, HandlerError> {
    let text = bytes.trim_ascii();
    let numbers = serde_json::from_slice::<BTreeMap<String, Number>>(text);
    match (text, numbers) {
        ([], _) => Ok(Bytes::new()),
        (_, Ok(numbers)) if numbers.len() <= USAGE_NAMES_MAX => Ok(Bytes::copy_from_slice(text)),
        _ => {
            let message = format!(
                "expected the file FLO_USAGE to hold a JSON object of at most {USAGE_NAMES_MAX} numbers, but it holds \
                 something else"
            );
            Err(HandlerError::no_retry(message).with_code("usage_invalid"))
        }
    }
}

/// The delay of what follows, if the program wrote one (W74).
fn delay(bytes: &[u8]) -> Result<Option<Duration>, HandlerError> {
    let text = String::from_utf8_lossy(bytes);
    match text.trim() {
        "" => Ok(None),
        text => period::parse(text).map(Some).map_err(|error| {
            let message = format!("the file FLO_DELAY_FILE: {error}");
            HandlerError::no_retry(message).with_code("delay_invalid")
        }),
    }
}

/// The outcome that the program named, or `success`. The server checks whether it is a valid
/// outcome.
fn outcome_name(bytes: &[u8]) -> Result<String, HandlerError> {
    let name = std::str::from_utf8(bytes).map_err(|_| {
        let message = "expected the outcome file to hold a name, but it is not UTF-8";
        HandlerError::no_retry(message).with_code("outcome_invalid")
    })?;
    let name = name.trim();
    Ok(if name.is_empty() { "success" } else { name }.to_owned())
}

/// The output as JSON text: unchanged if it is JSON, otherwise as a string without its final line
/// break.
fn json(output: &[u8]) -> Result<Vec<u8>, HandlerError> {
    if views::is_json(output) {
        return Ok(output.trim_ascii().to_vec());
    }
    let text = std::str::from_utf8(output).map_err(|error| {
        let message = format!("expected text in UTF-8 on stdout, but {error}");
        HandlerError::no_retry(message).with_code("output_not_utf8")
    })?;
    let text = text.trim_end_matches(['\n', '\r']);
    Ok(Value::from(text).to_string().into_bytes())
}

/// How a program ended, for people.
pub(super) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(signal)) => format!("the program was killed by signal {signal}"),
        (None, None) => "the program ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_file_holds_a_name_or_nothing() {
        assert_eq!(outcome_name(b" approved\n").expect("a name"), "approved");
        assert_eq!(outcome_name(b"\n").expect("nothing"), "success");
        let error = outcome_name(b"\xff").expect_err("not UTF-8");
        assert_eq!(error.code, "outcome_invalid");
    }

    #[test]
    fn json_is_passed_on_unchanged_and_other_text_as_a_string() {
        assert_eq!(json(b" {\"b\": 1.50} \n").expect("JSON"), b"{\"b\": 1.50}");
        assert_eq!(json(b"1 2\n").expect("text"), b"\"1 2\"");
    }

    #[test]
    fn bytes_that_are_not_text_fail_the_task() {
        let error = json(b"PNG\xff\xfe").expect_err("not UTF-8");
        assert_eq!(error.code, "output_not_utf8");
    }
}
