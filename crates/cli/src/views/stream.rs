//! A stream.

use super::service;
use crate::output::Row;
use flotilla_client::v1;
use serde::Serialize;

/// A stream.
#[derive(Debug, Serialize)]
pub(crate) struct StreamView {
    name: String,
    state: &'static str,
    partitions: u32,
    retention: RetentionView,
    hard_bytes_max: u64,
    records_count: u64,
    bytes: u64,
    first_id: Option<String>,
    last_id: Option<String>,
    lost_count: u64,
    groups_count: u32,
    created_at_ms: u64,
}

/// What a stream keeps; `None` is no bound.
#[derive(Debug, Serialize)]
struct RetentionView {
    records_max: Option<u64>,
    age_ms_max: Option<u64>,
    bytes_max: Option<u64>,
}

impl From<v1::StreamInfo> for StreamView {
    fn from(stream: v1::StreamInfo) -> Self {
        let retention = stream.retention.unwrap_or_default();
        Self {
            name: stream.name,
            state: service(stream.quarantined),
            partitions: stream.partitions,
            retention: RetentionView {
                records_max: retention.records_max,
                age_ms_max: retention.age_ms_max,
                bytes_max: retention.bytes_max,
            },
            hard_bytes_max: stream.hard_bytes_max,
            records_count: stream.records_count,
            bytes: stream.bytes,
            first_id: stream.first_id,
            last_id: stream.last_id,
            lost_count: stream.lost_count,
            groups_count: stream.groups_count,
            created_at_ms: stream.created_at_ms,
        }
    }
}

impl Row for StreamView {
    const HEADINGS: &'static [&'static str] = &[
        "NAME",
        "PARTITIONS",
        "RECORDS",
        "BYTES",
        "LAST",
        "GROUPS",
        "STATE",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.partitions.to_string(),
            self.records_count.to_string(),
            self.bytes.to_string(),
            super::or_dash(self.last_id.as_deref()),
            self.groups_count.to_string(),
            self.state.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_stream_has_the_published_fields() {
        let view = StreamView::from(v1::StreamInfo {
            name: "orders".to_owned(),
            partitions: 1,
            hard_bytes_max: 1 << 30,
            created_at_ms: 5,
            quarantined: true,
            ..v1::StreamInfo::default()
        });
        expect![[r#"{"name":"orders","state":"quarantined","partitions":1,"retention":{"records_max":null,"age_ms_max":null,"bytes_max":null},"hard_bytes_max":1073741824,"records_count":0,"bytes":0,"first_id":null,"last_id":null,"lost_count":0,"groups_count":0,"created_at_ms":5}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
