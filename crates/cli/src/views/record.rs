//! A record of a stream: the manual's StreamContext, as far as a read provides it.

use super::{json, or_dash};
use crate::output::Row;
use flotilla_client::v1;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A record.
#[derive(Debug, Serialize)]
pub(crate) struct RecordView {
    stream_id: String,
    stream: String,
    partition: u32,
    partition_key: Option<String>,
    payload: Value,
    headers: BTreeMap<String, String>,
}

impl RecordView {
    /// A record of the stream.
    pub(crate) fn new(stream: &str, record: v1::Record) -> Self {
        Self {
            stream_id: record.id,
            stream: stream.to_owned(),
            partition: record.partition,
            partition_key: Some(record.partition_key).filter(|key| !key.is_empty()),
            payload: json::value(&record.payload),
            headers: record.headers,
        }
    }
}

impl Row for RecordView {
    const HEADINGS: &'static [&'static str] = &["ID", "PARTITION", "KEY", "HEADERS", "PAYLOAD"];

    fn cells(&self) -> Vec<String> {
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let headers: Vec<String> = headers.collect();
        vec![
            self.stream_id.clone(),
            self.partition.to_string(),
            or_dash(self.partition_key.as_deref()),
            or_dash(Some(&headers.join(","))),
            json::one_line(&self.payload),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_record_has_the_fields_of_the_manuals_context() {
        let record = v1::Record {
            id: "1000-7".to_owned(),
            partition: 2,
            payload: r#"{"n":1}"#.into(),
            headers: BTreeMap::from([("source".to_owned(), "web".to_owned())]),
            partition_key: "ada".to_owned(),
        };
        let view = RecordView::new("orders", record);
        expect![[r#"{"stream_id":"1000-7","stream":"orders","partition":2,"partition_key":"ada","payload":{"n":1},"headers":{"source":"web"}}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
        expect![[r#"
            [
                "1000-7",
                "2",
                "ada",
                "source=web",
                "{\"n\":1}",
            ]
        "#]]
        .assert_debug_eq(&view.cells());
    }
}
