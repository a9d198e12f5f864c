//! Batches: the records that start one run of a trigger, and its input (W41).

use crate::json::{Json, quote};
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};

/// Consecutive records of one partition, for one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerBatch {
    /// At least one, at most as many as the trigger's `batch_size`.
    pub records: Vec<BatchedRecord>,
    /// Why the workflow's schema refuses the input (W4): no run starts, and the records go to the
    /// dead-letter stream. Asked before proposal, as the log carries the result.
    pub refusal: Option<String>,
}

/// A record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchedRecord {
    /// Its id.
    pub id: RecordId,
    /// Whether its payload is JSON, nested no deeper than the edge allows: asked before proposal.
    pub is_json: bool,
}

/// The input of a run that begins with these payloads, each with whether it is JSON: the payload for
/// a trigger whose `batch_size` is 1, else always an array. What is not JSON becomes a string, with
/// U+FFFD for bytes that are not UTF-8.
#[must_use]
pub fn input<'a>(batch_size: u32, payloads: impl IntoIterator<Item = (&'a [u8], bool)>) -> Json {
    let mut text = String::new();
    let mut payloads = payloads.into_iter();
    if batch_size == 1 {
        if let Some((payload, is_json)) = payloads.next() {
            push(payload, is_json, &mut text);
        }
        return Json::from_checked(text);
    }
    text.push('[');
    for (payload, is_json) in payloads {
        if text.len() > 1 {
            text.push(',');
        }
        push(payload, is_json, &mut text);
    }
    text.push(']');
    Json::from_checked(text)
}

fn push(payload: &[u8], is_json: bool, out: &mut String) {
    match std::str::from_utf8(payload) {
        Ok(text) if is_json => out.push_str(text),
        Ok(text) => quote(text, out),
        Err(_) => quote(&String::from_utf8_lossy(payload), out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(batch_size: u32, payloads: &[(&[u8], bool)]) -> String {
        let input = input(batch_size, payloads.iter().copied());
        input.as_str().to_owned()
    }

    #[test]
    fn json_goes_in_as_it_is_and_all_else_as_a_string() {
        assert_eq!(of(1, &[(b"{\"n\": 1.0}", true)]), "{\"n\": 1.0}");
        assert_eq!(of(1, &[(b"say \"hi\"", false)]), "\"say \\\"hi\\\"\"");
        assert_eq!(of(1, &[(b"", false)]), "\"\"");
        assert_eq!(of(1, &[(&[b'a', 0xff], false)]), "\"a\u{fffd}\"");
        assert_eq!(of(1, &[(&[b'1', 0xff], true)]), "\"1\u{fffd}\"");
    }

    #[test]
    fn a_batch_is_an_array_even_of_one() {
        assert_eq!(of(2, &[(b"1", true)]), "[1]");
        assert_eq!(of(9, &[(b"1", true), (b"x", false)]), "[1,\"x\"]");
    }
}
