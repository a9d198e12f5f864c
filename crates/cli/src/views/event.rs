//! An event of a run's history.

use super::json;
use crate::{period, time};
use flotilla_client::v1;
use serde::Serialize;
use serde_json::{Map, Number, Value};

/// The fields that every event has; they override attributes of the same name.
const FIELDS: [&str; 11] = [
    "seq",
    "at_ms",
    "raft_index",
    "type",
    "scope",
    "step",
    "visit",
    "detail",
    "node_id",
    "term",
    "redacted",
];

/// Suffixes of attributes that are times, and their replacements in text output.
const TIMES: [(&str, &str); 1] = [("_at_ms", "")];

/// The width of the type column, which fits the longest type: `plan_executor_exhausted`.
const TYPE_WIDTH: usize = 23;

/// An event: the published fields, the leader at the time, then the event's own attributes.
#[derive(Debug, Serialize)]
pub(crate) struct EventView {
    seq: u64,
    at_ms: u64,
    raft_index: u64,
    #[serde(rename = "type")]
    event_type: String,
    scope: String,
    step: String,
    #[serde(skip_serializing_if = "is_zero")]
    visit: u32,
    detail: String,
    node_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

impl EventView {
    /// The headings of [`Self::line`].
    pub(crate) fn headings() -> String {
        line(["SEQ", "TIME", "INDEX", "NODE", "TYPE", "STEP", "DETAIL"])
    }

    /// The event as a table line with fixed column widths, because the following rows are not known
    /// yet.
    pub(crate) fn line(&self) -> String {
        line([
            &self.seq.to_string(),
            &time::show(self.at_ms),
            &self.raft_index.to_string(),
            &self.node_id.to_string(),
            &self.event_type,
            &self.place(),
            &self.remarks(),
        ])
    }

    /// The step below the path of its scope, with the visit if it is not the first one.
    fn place(&self) -> String {
        let mut place = self.scope.clone();
        if !self.scope.is_empty() && !self.step.is_empty() {
            place.push('/');
        }
        place.push_str(&self.step);
        if self.visit > 1 {
            place.push_str(&format!("#{}", self.visit));
        }
        place
    }

    /// The detail, and the attributes that fit on a line.
    fn remarks(&self) -> String {
        let attributes = self
            .attributes
            .iter()
            .filter_map(|(name, value)| match value {
                Value::String(text) => Some(format!("{name}={text}")),
                Value::Number(number) => Some(self.number(name, number)),
                Value::Bool(flag) => Some(format!("{name}={flag}")),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            });
        let detail = Some(self.detail.clone()).filter(|detail| !detail.is_empty());
        let words: Vec<String> = detail.into_iter().chain(attributes).collect();
        words.join(" ")
    }

    /// A number; a time is shown as such, with its distance from the event.
    fn number(&self, name: &str, number: &Number) -> String {
        let time_name = TIMES
            .iter()
            .find_map(|(ending, kept)| Some(format!("{}{kept}", name.strip_suffix(ending)?)));
        let (Some(time_name), Some(at_ms)) = (time_name, number.as_u64()) else {
            return format!("{name}={number}");
        };
        let shown = format!("{time_name}={}", time::show(at_ms));
        match at_ms.checked_sub(self.at_ms) {
            Some(distance_ms) => format!("{shown} (in {})", period::show_ms(distance_ms)),
            None => shown,
        }
    }
}

impl From<v1::Event> for EventView {
    fn from(event: v1::Event) -> Self {
        let mut attributes = match json::value(&event.attributes) {
            Value::Object(attributes) => attributes,
            _ => Map::new(),
        };
        attributes.retain(|name, _| !FIELDS.contains(&name.as_str()));
        Self {
            seq: event.seq,
            at_ms: event.at_ms,
            raft_index: event.raft_index,
            event_type: event.r#type,
            scope: event.scope,
            step: event.step,
            visit: event.visit,
            detail: event.detail,
            node_id: event.node_id,
            term: event.term,
            redacted: event.redacted,
            attributes,
        }
    }
}

fn is_zero(visit: &u32) -> bool {
    *visit == 0
}

fn line([seq, time, index, node, event_type, step, detail]: [&str; 7]) -> String {
    let line = format!(
        "{seq:>4}  {time:<24}  {index:>8}  {node:>4}  {event_type:<TYPE_WIDTH$}  {step:<16}  {}",
        detail.replace(['\n', '\r'], " ")
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn event() -> EventView {
        EventView::from(v1::Event {
            seq: 4,
            at_ms: 1_000,
            raft_index: 812,
            r#type: "action_started".to_owned(),
            step: "charge".to_owned(),
            detail: "charge".to_owned(),
            attributes: r#"{"worker":"w-1","attempt":2,"seq":9}"#.into(),
            node_id: 3,
            term: Some(7),
            scope: "fan/stock".to_owned(),
            visit: 2,
            redacted: false,
        })
    }

    #[test]
    fn attributes_stand_beside_the_published_fields_and_never_hide_one() {
        expect![[r#"{"seq":4,"at_ms":1000,"raft_index":812,"type":"action_started","scope":"fan/stock","step":"charge","visit":2,"detail":"charge","node_id":3,"term":7,"attempt":2,"worker":"w-1"}"#]]
            .assert_eq(&serde_json::to_string(&event()).expect("printable"));
    }

    #[test]
    fn a_time_is_shown_to_people_as_one_with_its_distance() {
        let event = |attributes: &'static str| {
            EventView::from(v1::Event {
                at_ms: 1_000,
                attributes: attributes.into(),
                ..v1::Event::default()
            })
        };
        assert_eq!(
            event(r#"{"attempt":2,"due_at_ms":4000}"#).remarks(),
            "attempt=2 due=1970-01-01T00:00:04.000Z (in 3s)"
        );
        assert_eq!(
            event(r#"{"deadline_at_ms":1500}"#).remarks(),
            "deadline=1970-01-01T00:00:01.500Z (in 500ms)"
        );
        assert_eq!(
            event(r#"{"began_at_ms":0,"delay_ms":7}"#).remarks(),
            "began=1970-01-01T00:00:00.000Z delay_ms=7"
        );
    }

    #[test]
    fn events_stand_below_their_headings() {
        assert_eq!(
            EventView::headings(),
            " SEQ  TIME                         INDEX  NODE  TYPE                     STEP              DETAIL"
        );
        assert_eq!(
            event().line(),
            "   4  1970-01-01T00:00:01.000Z       812     3  action_started           fan/stock/charge#2  charge attempt=2 worker=w-1"
        );
    }

    #[test]
    fn every_type_fits_into_its_column() {
        let page = include_str!("../../../../docs/manual/reference/events.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let types: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        assert!(types.len() >= 40, "the page lists the types: {types:?}");
        let longest = types.iter().map(|name| name.len()).max();
        assert_eq!(longest, Some(TYPE_WIDTH));
    }
}
