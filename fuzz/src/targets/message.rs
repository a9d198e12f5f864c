//! Messages in JSON, as the HTTP API reads them (H3). The first line is the name of a message, the rest its JSON.

use crate::target::{Target, Verdict};
use flotilla_api::json::{DESCRIPTORS, FieldForm, form_of, from_json, to_json};
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage};

pub(super) const TARGET: Target = Target {
    name: "message",
    summary: "messages in JSON: printed and parsed again the same, also in binary",
    tokens: &[
        "StartRunRequest\n",
        "AppendRecordsRequest\n",
        "Run\n",
        "{\"input\":",
        "\"input_base64\":",
        "\"locks\":",
        "\"status\":",
        "\"timed_out\"",
        "\"steps\":",
        "\"records\":[{\"payload\":",
        "\"headers\":{\"a\":\"b\"}",
        "\"incarnation\":\"18446744073709551615\"",
        "null",
        "true",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"a\"",
        "\"/wA=\"",
        "\\u0061",
        "-1",
        "1.50",
        "1e400",
        " ",
        "\n",
    ],
    check,
};

fn check(input: &[u8]) -> Verdict {
    let line = input.iter().position(|byte| *byte == b'\n');
    let (name, text) = input.split_at(line.map_or(input.len(), |end| end + 1));
    let name = String::from_utf8_lossy(name);
    let descriptor = DESCRIPTORS.get_message_by_name(&format!("flotilla.v1.{}", name.trim_end()));
    let Some(descriptor) = descriptor.filter(|descriptor| !has_inline_fields(descriptor)) else {
        return Verdict::Refused;
    };
    let Some(message) = read(&descriptor, text) else {
        return Verdict::Refused;
    };
    let printed = to_json(&message).expect("what was read can be printed");
    let again = read(&descriptor, &printed).map(|again| through_binary(&again));
    let is_same = again == Some(through_binary(&message));
    assert!(is_same, "printed as {}", String::from_utf8_lossy(&printed));
    Verdict::Accepted
}

/// The message after a round trip through its binary form, in which fields with default values are not set.
fn through_binary(message: &DynamicMessage) -> DynamicMessage {
    let encoded = message.encode_to_vec();
    let decoded = DynamicMessage::decode(message.descriptor(), encoded.as_slice());
    decoded.expect("what was encoded can be decoded")
}

/// Whether a part of the message is shown in a way that is never read.
fn has_inline_fields(descriptor: &MessageDescriptor) -> bool {
    descriptor.fields().any(|field| {
        let inner = field.kind();
        let inner = inner.as_message().filter(|inner| *inner != descriptor);
        form_of(&field) == FieldForm::Flattened || inner.is_some_and(has_inline_fields)
    })
}

/// The message; `None` for a text that is none. An error points to a place in the text.
fn read(descriptor: &MessageDescriptor, text: &[u8]) -> Option<DynamicMessage> {
    let mut message = DynamicMessage::new(descriptor.clone());
    match from_json(&mut message, text) {
        Ok(_) => Some(message),
        Err(error) => {
            let lines = text.split(|byte| *byte == b'\n').count();
            assert!(error.line <= lines, "{error} in {lines} lines");
            assert!(
                error.pointer.is_empty() || error.pointer.starts_with('/'),
                "{error}"
            );
            None
        }
    }
}
