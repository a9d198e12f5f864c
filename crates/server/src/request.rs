//! Validates the fields of requests.

use crate::config::is_address;
use crate::errors::Refusal;
use crate::gateway::GroupGateway;
use crate::limits::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, PAGE_TOKEN_BYTES_MAX, WAIT_MS_MAX};
use crate::span;
use flotilla_dsl::payload;
use flotilla_engine::ids::{NameInvalid, Namespace, OutcomeName, RunId, WorkflowVersion};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{
    INFO_BYTES_MAX, LABELS_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
    STEP_DELAY_MS_MAX, TARGET_BYTES_MAX, USAGE_NAME_BYTES_MAX, USAGE_NAMES_MAX,
};
use flotilla_engine::view::PageRange;
use flotilla_engine::{
    ClusterScope, Command, DueTime, NodeId, Operation, RequestId, VersionChoice,
};
use serde_json::Number;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;
use uuid::Uuid;

/// More than the names and numbers of a usage take (W87). In bytes.
const USAGE_BYTES_MAX: usize = 16 << 10;

/// The outcome of a report that gives none.
const OUTCOME_DEFAULT: &str = "success";

/// The namespace of a request; empty means `default`.
pub(crate) fn namespace(text: &str) -> Result<Namespace, Refusal> {
    if text.is_empty() {
        return Ok(Namespace::default_namespace());
    }
    named_namespace("namespace", text)
}

/// A namespace that is the request's subject, so that it must be given.
pub(crate) fn named_namespace(field: &'static str, text: &str) -> Result<Namespace, Refusal> {
    name(field, Namespace::new(text)).map_err(|refusal| {
        refusal
            .with_hint("for example `shop` or `shop.eu-1`; `flo ns list` shows the existing ones")
    })
}

/// A node id.
pub(crate) fn node_id(id: u64) -> Result<NodeId, Refusal> {
    if id == 0 {
        let message = "expected node_id to be at least 1, but it is 0";
        return Err(Refusal::invalid("node_id", message));
    }
    Ok(NodeId(id))
}

/// Checks that a field is a `host:port`.
pub(crate) fn address(field: &'static str, text: &str) -> Result<(), Refusal> {
    if is_address(text) {
        return Ok(());
    }
    let message = format!("expected {field} to be a host:port, but it is {text:?}");
    Err(Refusal::invalid(field, message).with_hint("for example 10.0.0.4:9001"))
}

/// The validated name in this field.
pub(crate) fn name<T>(field: &'static str, checked: Result<T, NameInvalid>) -> Result<T, Refusal> {
    checked.map_err(|error| Refusal::invalid(field, error.to_string()))
}

/// The id of the run that a request is about; log lines of the request carry it from here on.
pub(crate) fn run_id(text: String) -> Result<RunId, Refusal> {
    let run_id = name("run_id", RunId::new(text))?;
    span::note_run(run_id.as_str());
    Ok(run_id)
}

/// The optional name in this field; empty means none.
pub(crate) fn optional<T>(
    field: &'static str,
    text: String,
    check: impl FnOnce(String) -> Result<T, NameInvalid>,
) -> Result<Option<T>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    name(field, check(text)).map(Some)
}

/// A JSON payload; empty means `default`.
pub(crate) fn json(
    bytes: &[u8],
    field: &'static str,
    default: &'static str,
) -> Result<Json, Refusal> {
    let text = if bytes.is_empty() {
        default
    } else {
        json_text(bytes, field, PAYLOAD_BYTES_MAX)?
    };
    Ok(Json::from_checked(text.to_owned()))
}

/// The metadata of a run, a JSON object; empty means none (W91).
pub(crate) fn metadata(bytes: &[u8]) -> Result<Option<Json>, Refusal> {
    match bytes {
        [] => Ok(None),
        bytes => object(bytes, "metadata", METADATA_BYTES_MAX).map(Some),
    }
}

/// The revision that a resume or a retry selects; `None` for that of the run (W89, W90).
pub(crate) fn run_version_choice(
    latest: bool,
    version: String,
    revision: u32,
) -> Result<Option<VersionChoice>, Refusal> {
    match (latest, version_choice(version, revision)?) {
        (false, choice) => Ok(choice),
        (true, None) => Ok(Some(VersionChoice::Latest)),
        (true, Some(_)) => {
            let message = "expected latest or version, but the request has both";
            Err(Refusal::invalid("version", message))
        }
    }
}

/// A revision of the version that a request names; `None` if it names no version (W5).
pub(crate) fn version_choice(
    version: String,
    revision: u32,
) -> Result<Option<VersionChoice>, Refusal> {
    match (
        optional("version", version, WorkflowVersion::new)?,
        revision,
    ) {
        (Some(version), 0) => Ok(Some(VersionChoice::Version(version))),
        (Some(version), revision) => Ok(Some(VersionChoice::Revision(version, revision))),
        (None, 0) => Ok(None),
        (None, _) => {
            let message = "expected version and revision, but the request has only revision";
            Err(Refusal::invalid("version", message))
        }
    }
}

/// A patch of a run's state; empty means none (W66). Whether it fits is decided with the state.
pub(crate) fn state_patch(bytes: &[u8]) -> Result<Option<Json>, Refusal> {
    match bytes {
        [] => Ok(None),
        bytes => json(bytes, "state_patch", "null").map(Some),
    }
}

/// What a task has used: an object of numbers; empty means nothing (W87).
pub(crate) fn usage(bytes: &[u8]) -> Result<Option<Json>, Refusal> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let refusal = |found: String| {
        let message = format!(
            "expected usage to be a JSON object of at most {USAGE_NAMES_MAX} numbers, with names of 1 to {USAGE_NAME_BYTES_MAX} \
             bytes, but {found}"
        );
        Refusal::invalid("usage", message)
    };
    let text = json_text(bytes, "usage", USAGE_BYTES_MAX)?;
    let numbers: BTreeMap<String, Number> =
        serde_json::from_str(text).map_err(|error| refusal(format!("it is not: {error}")))?;
    if numbers.len() > USAGE_NAMES_MAX {
        return Err(refusal(format!("there are {}", numbers.len())));
    }
    let names = 1..=USAGE_NAME_BYTES_MAX;
    if let Some(name) = numbers.keys().find(|name| !names.contains(&name.len())) {
        return Err(refusal(format!("one has {} bytes", name.len())));
    }
    let text = serde_json::to_string(&numbers).map_err(|error| refusal(error.to_string()))?;
    Ok(Some(Json::from_checked(text)))
}

/// An info entry, a JSON object (W92).
pub(crate) fn info(bytes: &[u8]) -> Result<Json, Refusal> {
    object(bytes, "content", INFO_BYTES_MAX)
}

fn object(bytes: &[u8], field: &'static str, bytes_max: usize) -> Result<Json, Refusal> {
    let text = json_text(bytes, field, bytes_max)?.trim();
    if !text.starts_with('{') {
        let message = format!("expected {field} to be a JSON object, but it is not");
        return Err(Refusal::invalid(field, message));
    }
    Ok(Json::from_checked(text.to_owned()))
}

/// The target of a run (W85).
pub(crate) fn target(text: Option<String>) -> Result<Option<String>, Refusal> {
    const FIELD: &str = "target";
    let bytes = text.as_ref().map_or(0, String::len);
    if bytes > TARGET_BYTES_MAX {
        let message =
            format!("expected {FIELD} of at most {TARGET_BYTES_MAX} bytes, but it has {bytes}");
        return Err(Refusal::invalid(FIELD, message));
    }
    Ok(text)
}

fn json_text<'b>(
    bytes: &'b [u8],
    field: &'static str,
    bytes_max: usize,
) -> Result<&'b str, Refusal> {
    if bytes.len() > bytes_max {
        let message = format!(
            "expected {field} to have at most {bytes_max} bytes, but it has {}",
            bytes.len()
        );
        return Err(Refusal::too_large(message).at(field));
    }
    payload::text(bytes)
        .map_err(|error| Refusal::invalid(field, format!("expected {field} {error}")))
}

/// A fresh request id. Ids that are drawn in sequence are adjacent (ADR 0023). It has no time: the caller cannot repeat the
/// request, so this node's clock must not make it too old.
pub(crate) fn draw_request_id() -> RequestId {
    RequestId(Uuid::now_v7().as_u128()).without_time()
}

/// The request's id; drawn here if the caller gave none.
pub(crate) fn request_id(bytes: &[u8]) -> Result<RequestId, Refusal> {
    if bytes.is_empty() {
        return Ok(draw_request_id());
    }
    let bytes = <[u8; 16]>::try_from(bytes).map_err(|_| {
        let message = format!(
            "expected a request id of 16 bytes, but it has {}",
            bytes.len()
        );
        Refusal::invalid("request_id", message)
    })?;
    Ok(RequestId(u128::from_be_bytes(bytes)))
}

/// A command that acts in no namespace, with the request's id.
pub(crate) fn cluster_command<O: Operation<Scope = ClusterScope>>(
    id: &[u8],
    body: O,
) -> Result<Command<O>, Refusal> {
    Ok(Command {
        request_id: Some(request_id(id)?),
        scope: ClusterScope,
        body,
    })
}

/// Refuses a number outside its range.
pub(crate) fn within(field: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), Refusal> {
    if range.contains(&value) {
        return Ok(());
    }
    let (min, max) = range.into_inner();
    let message = format!("expected `{field}` from {min} to {max}, but it is {value}");
    Err(Refusal::invalid(field, message))
}

/// How long a call waits; `None` if it does not.
pub(crate) fn wait(wait_ms: u64) -> Result<Option<Duration>, Refusal> {
    within("wait_ms", wait_ms, 0..=WAIT_MS_MAX)?;
    Ok(Some(Duration::from_millis(wait_ms)).filter(|length| !length.is_zero()))
}

/// Two fields of a request that give a time: in milliseconds since the Unix epoch, or as a delay. 0 is not given.
pub(crate) struct DueFields {
    pub(crate) at: (&'static str, u64),
    pub(crate) after: (&'static str, u64),
}

impl DueFields {
    /// The time, at most `max_ms` after `now_ms`.
    pub(crate) fn read(self, now_ms: u64, max_ms: u64) -> Result<Option<DueTime>, Refusal> {
        match (self.at, self.after) {
            ((_, 0), (_, 0)) => Ok(None),
            ((field, ms), (_, 0)) => {
                within(field, ms, 1..=now_ms.saturating_add(max_ms))?;
                Ok(Some(DueTime::At { ms }))
            }
            ((_, 0), (field, ms)) => {
                within(field, ms, 1..=max_ms)?;
                Ok(Some(DueTime::After { ms }))
            }
            ((at, _), (after, _)) => {
                let message = format!("expected `{at}` or `{after}`, but both are given");
                Err(Refusal::invalid(after, message))
            }
        }
    }
}

/// The earliest time of what follows the end of a task, by the clock of the task's group (W74).
pub(crate) fn not_before(
    gateway: &GroupGateway<'_>,
    delay_ms: u64,
    not_before_ms: u64,
) -> Result<Option<DueTime>, Refusal> {
    if (delay_ms, not_before_ms) == (0, 0) {
        return Ok(None);
    }
    let fields = DueFields {
        at: ("not_before_ms", not_before_ms),
        after: ("delay_ms", delay_ms),
    };
    fields.read(gateway.replica().now_ms(), STEP_DELAY_MS_MAX)
}

/// The outcome of a task; empty means `success`.
pub(crate) fn outcome(text: String) -> Result<OutcomeName, Refusal> {
    let text = match text.is_empty() {
        true => OUTCOME_DEFAULT.to_owned(),
        false => text,
    };
    name("outcome", OutcomeName::new(text))
}

/// Checks the length of a text.
pub(crate) fn at_most(field: &'static str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    let found = text.len();
    let message = format!("expected `{field}` of at most {bytes_max} bytes, but it has {found}");
    Err(Refusal::invalid(field, message))
}

/// Labels (A3): validates their number and the length of their names and values.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> Result<(), Refusal> {
    if labels.len() > LABELS_MAX {
        let message = format!(
            "expected at most {LABELS_MAX} labels, but found {}",
            labels.len()
        );
        return Err(Refusal::invalid("labels", message));
    }
    let is_long = |text: &String| text.len() > NAME_BYTES_MAX;
    if labels
        .iter()
        .any(|(name, value)| name.is_empty() || is_long(name) || is_long(value))
    {
        let message = format!(
            "expected label names of 1 to {NAME_BYTES_MAX} bytes and values of at most as many, \
             but one is longer or empty"
        );
        return Err(Refusal::invalid("labels", message));
    }
    Ok(())
}

/// The part of a list that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    after: Option<Vec<u8>>,
    rows_max: usize,
}

impl Page {
    /// The page as the engine's views take it.
    pub(crate) fn range(&self) -> PageRange<'_> {
        PageRange {
            after: self.after.as_deref(),
            limit: self.rows_max,
        }
    }
}

/// The page that a request asks for.
pub(crate) fn page(limit: u32, token: &str) -> Result<Page, Refusal> {
    let after = if token.is_empty() {
        None
    } else {
        Some(parse_token(token)?)
    };
    Ok(Page {
        after,
        rows_max: rows_max(limit)?,
    })
}

/// The maximum of rows in a page.
pub(crate) fn rows_max(limit: u32) -> Result<usize, Refusal> {
    let limit = if limit == 0 { PAGE_ROWS_DEFAULT } else { limit };
    if limit > PAGE_ROWS_MAX {
        let message = format!("expected a limit of at most {PAGE_ROWS_MAX}, but it is {limit}");
        return Err(Refusal::invalid("limit", message));
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The token that continues a list; empty on its last page.
pub(crate) fn page_token(next: Option<Vec<u8>>) -> String {
    hex(&next.unwrap_or_default())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("a String takes every byte");
    }
    digits
}

/// The refusal of a page token that is none of this list.
pub(crate) fn other_token() -> Refusal {
    let message = "expected the page token of the previous page, but it is something else";
    Refusal::invalid("page_token", message).with_hint("start again without a page token")
}

fn parse_token(token: &str) -> Result<Vec<u8>, Refusal> {
    let is_token = token.len() <= PAGE_TOKEN_BYTES_MAX
        && token.len().is_multiple_of(2)
        && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_token {
        return Err(other_token());
    }
    let digits = (0..token.len()).step_by(2);
    let bytes = digits.map(|start| u8::from_str_radix(&token[start..start + 2], 16));
    bytes.collect::<Result<_, _>>().map_err(|_| other_token())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::limits::JSON_DEPTH_MAX;

    fn refused(bytes: &[u8]) -> String {
        json(bytes, "input", "{}").unwrap_err().to_string()
    }

    #[test]
    fn two_choices_of_a_revision_are_refused() {
        let refusal = run_version_choice(true, "2.0.0".to_owned(), 0);
        let refusal = refusal.unwrap_err().to_string();
        assert!(refusal.contains("has both"), "{refusal}");
    }

    #[test]
    fn json_is_taken_as_it_is_and_nothing_is_its_default() {
        let text = r#" {"a": [1.50, 1e999, "\u00e9", null]} "#;
        assert_eq!(json(text.as_bytes(), "input", "{}").unwrap().as_str(), text);
        assert_eq!(json(b"", "input", "{}").unwrap().as_str(), "{}");
    }

    #[test]
    fn invalid_json_is_refused_with_the_place() {
        let place = refused(b"{\"a\":\n nope}");
        assert!(place.contains("line 2 column 3"), "{place}");
        assert!(refused(b"{} {}").contains("trailing characters"));
        assert!(refused(b"[\"\xff\"]").contains("index 2"));
    }

    #[test]
    fn a_payload_over_its_bounds_is_refused() {
        let long = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
        assert!(json(long.as_bytes(), "input", "{}").is_ok());
        assert!(refused(format!("{long} ").as_bytes()).contains("1048577"));
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(json(nested(JSON_DEPTH_MAX).as_bytes(), "input", "{}").is_ok());
        assert!(refused(nested(JSON_DEPTH_MAX + 1).as_bytes()).contains("it has 101"));
        assert!(refused(nested(PAYLOAD_BYTES_MAX / 2).as_bytes()).contains("it has 524288"));
        let quoted = format!(r#"["\"{}"]"#, "[".repeat(500));
        assert!(json(quoted.as_bytes(), "input", "{}").is_ok());
    }

    #[test]
    fn a_request_id_is_16_bytes_or_drawn() {
        assert_eq!(request_id(&[0; 16]).unwrap(), RequestId(0));
        assert_ne!(request_id(b"").unwrap(), request_id(b"").unwrap());
        assert!(request_id(&[0; 15]).unwrap_err().to_string().contains("15"));
    }

    #[test]
    fn a_page_token_leads_back_to_its_key() {
        let token = page_token(Some(vec![0, 255, 18]));
        let page = page(0, &token).unwrap();
        assert_eq!(page.range().after, Some(&[0, 255, 18][..]));
        assert_eq!(page.range().limit, 100);
        assert_eq!(page_token(None), "");
    }

    #[test]
    fn a_bad_page_token_or_limit_is_refused() {
        for token in ["0", "0g", "+1", "é", &"00".repeat(PAGE_TOKEN_BYTES_MAX)] {
            assert!(page(10, token).is_err(), "{token}");
        }
        assert_eq!(page(1_000, "").unwrap().range(), PageRange::first(1_000));
        assert!(page(1_001, "").is_err());
    }

    #[test]
    fn labels_are_bounded_in_number_and_length() {
        let label = |text: &str| BTreeMap::from([(text.to_owned(), String::new())]);
        assert!(labels(&label("zone")).is_ok());
        assert!(labels(&label("")).is_err());
        assert!(labels(&label(&"x".repeat(257))).is_err());
        let many = (0..65)
            .map(|number| (number.to_string(), String::new()))
            .collect();
        assert!(labels(&many).is_err());
    }

    #[test]
    fn an_empty_namespace_is_the_default_one() {
        assert_eq!(namespace("").unwrap(), Namespace::default_namespace());
        assert_eq!(namespace("prod").unwrap().as_str(), "prod");
        assert!(namespace("1st").is_err());
    }
}
