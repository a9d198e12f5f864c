use super::*;
use crate::v1;
use prost::Message;
use prost_reflect::DynamicMessage;

fn empty(name: &str) -> DynamicMessage {
    let descriptor = DESCRIPTORS.get_message_by_name(&format!("flotilla.v1.{name}"));
    DynamicMessage::new(descriptor.expect("a message"))
}

fn shown<T: Message>(name: &str, message: &T) -> String {
    let mut dynamic = empty(name);
    dynamic
        .merge(message.encode_to_vec().as_slice())
        .expect("the same message");
    String::from_utf8(to_json(&dynamic).expect("JSON")).expect("UTF-8")
}

fn parsed<T: Message + Default>(name: &str, text: &str) -> Result<T, JsonError> {
    let mut dynamic = empty(name);
    from_json(&mut dynamic, text.as_bytes())?;
    Ok(T::decode(dynamic.encode_to_vec().as_slice()).expect("the same message"))
}

/// The pointer, and what is wrong there.
fn fault(name: &str, text: &str) -> (String, String) {
    let mut dynamic = empty(name);
    let error = from_json(&mut dynamic, text.as_bytes()).expect_err("it is refused");
    (error.pointer.clone(), error.to_string())
}

#[test]
fn a_response_has_every_field_and_its_payloads_keep_their_digits() {
    let change = v1::RunStatusChange {
        seq: 7,
        status: v1::RunStatus::TimedOut.into(),
        output: Some(r#"{"amount": 1.50}"#.into()),
        ..v1::RunStatusChange::default()
    };
    assert_eq!(
        shown("RunStatusChange", &change),
        r#"{"seq":7,"status":"timed_out","terminal":null,"detail":null,"output":{"amount": 1.50},"redacted":false}"#
    );
    let open = v1::RunStatusChange::default();
    assert_eq!(
        shown("RunStatusChange", &open),
        r#"{"seq":0,"status":null,"terminal":null,"detail":null,"output":null,"redacted":false}"#
    );
}

#[test]
fn bytes_that_are_not_json_are_shown_in_base64() {
    let key = |value: &'static [u8]| v1::KeyValue {
        key: "a/b".to_owned(),
        value: value.into(),
        version: 3,
        expires_at_ms: None,
    };
    assert_eq!(
        shown("KeyValue", &key(b"\xff\x00")),
        r#"{"key":"a/b","value_base64":"/wA=","version":3,"expires_at_ms":null}"#
    );
    assert_eq!(
        shown("KeyValue", &key(b"[1]")),
        r#"{"key":"a/b","value":[1],"version":3,"expires_at_ms":null}"#
    );
    let set: v1::SetKeyRequest = parsed("SetKeyRequest", r#"{"value_base64": "/wA="}"#).unwrap();
    assert_eq!(&set.value[..], b"\xff\x00");
    let (pointer, text) = fault("SetKeyRequest", r#"{"value": 1, "value_base64": "/wA="}"#);
    assert_eq!(pointer, "/value_base64");
    assert!(text.starts_with("expected `value` once"), "{text}");
    let (_, text) = fault("SetKeyRequest", r#"{"value_base64": "?"}"#);
    assert!(text.contains("expected text in base64"), "{text}");
}

#[test]
fn binary_fields_are_in_base64_even_if_they_are_json() {
    let request: v1::AwaitRequest =
        parsed("AwaitRequest", r#"{"poll_id_base64": "MTIz"}"#).unwrap();
    assert_eq!(&request.poll_id[..], b"123");
    let text = shown("AwaitRequest", &request);
    assert!(text.contains(r#""poll_id_base64":"MTIz""#), "{text}");
    let (pointer, text) = fault("AwaitRequest", r#"{"poll_id": "abc"}"#);
    assert_eq!(pointer, "/poll_id");
    assert!(text.contains("unknown"), "{text}");
}

#[test]
fn the_attributes_of_an_event_stand_beside_its_fields() {
    let event = v1::Event {
        seq: 1,
        attributes: r#"{"seq": 9, "worker": "w1", "delay_ms": 100}"#.into(),
        ..v1::Event::default()
    };
    let text = shown("Event", &event);
    assert!(text.contains(r#""delay_ms":100,"worker":"w1""#), "{text}");
    assert!(
        text.contains(r#""seq":1"#) && !text.contains("attributes"),
        "{text}"
    );
}

#[test]
fn a_random_number_is_a_string_and_is_read_as_either() {
    let request = v1::HeartbeatRequest {
        incarnation: u64::MAX,
        ..v1::HeartbeatRequest::default()
    };
    let text = shown("HeartbeatRequest", &request);
    assert!(
        text.contains(r#""incarnation":"18446744073709551615""#),
        "{text}"
    );
    for text in [r#"{"incarnation": 5}"#, r#"{"incarnation": "5"}"#] {
        let request: v1::HeartbeatRequest = parsed("HeartbeatRequest", text).unwrap();
        assert_eq!(request.incarnation, 5, "{text}");
    }
    let (pointer, _) = fault("GetHistoryRequest", r#"{"limit": "5"}"#);
    assert_eq!(pointer, "/limit");
}

#[test]
fn a_request_is_read() {
    let text = r#"{"version": null, "input": {"amount": 1.50}, "locks": ["a", "b"], "wait": true,
        "start_at_ms": 18446744073709551615, "target": ""}"#;
    let request: v1::StartRunRequest = parsed("StartRunRequest", text).unwrap();
    assert_eq!(request.input, r#"{"amount": 1.50}"#);
    assert_eq!(request.locks, ["a", "b"]);
    assert_eq!(request.target.as_deref(), Some(""));
    assert_eq!((request.wait, request.start_at_ms), (true, u64::MAX));
    let text = r#"{"records": [{"payload": null, "headers": {"a": "b"}}]}"#;
    let request: v1::AppendRecordsRequest = parsed("AppendRecordsRequest", text).unwrap();
    assert_eq!(request.records[0].headers["a"], "b");
    assert!(request.records[0].payload.is_empty());
}

#[test]
fn a_fault_has_its_place() {
    for (text, pointer, expected) in [
        ("", "", "EOF"),
        ("[]", "", "expected an object"),
        ("{} {}", "", "trailing"),
        (r#"{"input": {"a": }}"#, "/input", "line 1, column 17"),
        (r#"{"wiat": true}"#, "/wiat", "`wiat` is unknown"),
        (r#"{"request_id": "x"}"#, "/request_id", "unknown"),
        (r#"{"wait": 1}"#, "/wait", "expected true or false"),
        (r#"{"wait": true, "wait": true}"#, "/wait", "given again"),
        (r#"{"locks": ["a", 5]}"#, "/locks/1", "expected a string"),
        (r#"{"locks": ["a", null]}"#, "/locks/1", "null"),
        (r#"{"locks": {}}"#, "/locks", "expected an array"),
        (r#"{"revision": -1}"#, "/revision", "from 0 to 4294967295"),
        (
            r#"{"revision": 4294967296}"#,
            "/revision",
            "from 0 to 4294967295",
        ),
        (
            r#"{"revision": 1.5}"#,
            "/revision",
            "expected a whole number",
        ),
    ] {
        let (found, detail) = fault("StartRunRequest", text);
        assert_eq!(found, pointer, "{text}: {detail}");
        assert!(detail.contains(expected), "{text}: {detail}");
    }
    let mut request = empty("StartRunRequest");
    let error = from_json(&mut request, br#"{"wiat": true}"#).unwrap_err();
    assert!(error.known.contains(&"wait".to_owned()));
    assert!(!error.known.contains(&"request_id".to_owned()));
}

#[test]
fn the_names_of_the_given_fields_are_returned() {
    let mut request = empty("StartRunRequest");
    let given = from_json(
        &mut request,
        br#"{"wait": false, "input": null, "locks": []}"#,
    )
    .unwrap();
    assert_eq!(given.into_iter().collect::<Vec<_>>(), ["locks", "wait"]);
}

#[test]
fn only_one_of_alternatives_is_given() {
    let both = r#"{"keep_records": 10, "before_id": "5-0"}"#;
    let (pointer, text) = fault("TrimStreamRequest", both);
    assert_eq!(pointer, "/before_id");
    assert!(
        text.contains("`keep_records` or `before_id`, but both"),
        "{text}"
    );
    let mut request = empty("TrimStreamRequest");
    set_from_text(&mut request, "keep_records", "10").unwrap();
    assert!(set_from_text(&mut request, "before_id", "5-0").is_err());
}

#[test]
fn lists_are_bounded_before_they_are_decoded() {
    let items = vec!["{}"; ITEMS_MAX].join(",");
    let text = format!("{{\"completions\":[{items}]}}");
    let request: v1::CompleteRequest = parsed("CompleteRequest", &text).unwrap();
    assert_eq!(request.completions.len(), ITEMS_MAX);
    let text = format!("{{\"completions\":[{items},{{}}]}}");
    let (_, text) = fault("CompleteRequest", &text);
    assert!(text.contains("at most 20000 items"), "{text}");
}

#[test]
fn what_is_shown_as_json_is_exactly_what_is_stored() {
    let nested = "[".repeat(101) + &"]".repeat(101);
    for stored in ["42\n", " 1", "null", &nested] {
        let value = v1::KeyValue {
            value: stored.to_owned().into_bytes().into(),
            ..v1::KeyValue::default()
        };
        let text = shown("KeyValue", &value);
        let again: v1::KeyValue = parsed("KeyValue", &text).unwrap();
        assert_eq!(again, value, "{text}");
    }
    let (pointer, _) = fault("StartRunRequest", &format!("{{\"input\": {nested}}}"));
    assert_eq!(pointer, "/input");
}

#[test]
fn parameters_are_read_by_the_type_of_their_field() {
    let mut request = empty("ListRunsRequest");
    for (name, text) in [("limit", "5"), ("stale", "true"), ("status", "timed_out")] {
        set_from_text(&mut request, name, text).unwrap();
    }
    let request = v1::ListRunsRequest::decode(request.encode_to_vec().as_slice()).unwrap();
    assert_eq!((request.limit, request.stale), (5, true));
    assert_eq!(request.status(), v1::RunStatus::TimedOut);
    for (name, text, expected) in [
        ("limt", "5", "unknown"),
        ("limit", "+5", "expected a whole number"),
        ("limit", "", "expected a whole number"),
        ("stale", "yes", "expected true or false"),
        ("status", "done", "one of pending, running"),
        ("status", "unspecified", "one of pending, running"),
    ] {
        let mut request = empty("ListRunsRequest");
        let error = set_from_text(&mut request, name, text).unwrap_err();
        assert!(error.detail.contains(expected), "{name}={text}: {error}");
    }
    let mut request = empty("ListRunsRequest");
    set_from_text(&mut request, "limit", "5").unwrap();
    assert!(set_from_text(&mut request, "limit", "6").is_err());
    let mut request = empty("StartRunRequest");
    for lock in ["a", "b"] {
        set_from_text(&mut request, "locks", lock).unwrap();
    }
    assert_eq!(
        request
            .get_field_by_name("locks")
            .unwrap()
            .as_list()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn every_message_has_distinct_names_in_json() {
    let package = DESCRIPTORS.all_messages();
    for message in package.filter(|message| message.package_name() == "flotilla.v1") {
        let fields: Vec<_> = message.fields().collect();
        for field in &fields {
            let base64 = format!("{}{BASE64_SUFFIX}", field.name());
            assert!(
                message.get_field_by_name(&base64).is_none(),
                "{}",
                field.full_name()
            );
            if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
                assert_eq!(entry.map_entry_key_field().kind(), Kind::String);
            }
        }
    }
    for (option, form) in FieldForm::OPTIONS {
        assert!(FORMS.values().any(|found| *found == form), "{option}");
    }
}
