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
    hard_limit_bytes: u64,
    record_count: u64,
    bytes: u64,
    first_id: Option<String>,
    last_id: Option<String>,
    lost_count: u64,
    group_count: u32,
    created_at_ms: u64,
}

/// The retention of a stream; `None` means no limit.
#[derive(Debug, Serialize)]
struct RetentionView {
    max_records: Option<u64>,
    max_age_ms: Option<u64>,
    max_bytes: Option<u64>,
}

impl From<v1::StreamInfo> for StreamView {
    fn from(stream: v1::StreamInfo) -> Self {
        let retention = stream.retention.unwrap_or_default();
        Self {
            name: stream.name,
            state: service(stream.quarantined),
            partitions: stream.partitions,
            retention: RetentionView {
                max_records: retention.max_records,
                max_age_ms: retention.max_age_ms,
                max_bytes: retention.max_bytes,
            },
            hard_limit_bytes: stream.hard_limit_bytes,
            record_count: stream.record_count,
            bytes: stream.bytes,
            first_id: stream.first_id,
            last_id: stream.last_id,
            lost_count: stream.lost_count,
            group_count: stream.group_count,
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
            self.record_count.to_string(),
            self.bytes.to_string(),
            super::or_dash(self.last_id.as_deref()),
            self.group_count.to_string(),
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
            hard_limit_bytes: 1 << 30,
            created_at_ms: 5,
            quarantined: true,
            ..v1::StreamInfo::default()
        });
        expect![[r#"{"name":"orders","state":"quarantined","partitions":1,"retention":{"max_records":null,"max_age_ms":null,"max_bytes":null},"hard_limit_bytes":1073741824,"record_count":0,"bytes":0,"first_id":null,"last_id":null,"lost_count":0,"group_count":0,"created_at_ms":5}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
