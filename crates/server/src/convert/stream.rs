//! Converts streams and their records to messages.

use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::RecordId;
use flotilla_engine::view::{RecordView, StreamView};

/// Converts a stream.
pub(crate) fn message(view: StreamView) -> v1::StreamInfo {
    let StreamView {
        name,
        record,
        first_id,
        is_quarantined,
    } = view;
    let retention = record.settings.retention;
    let last_id = Some(record.last_id).filter(|id| *id != RecordId::START);
    v1::StreamInfo {
        name: name.to_string(),
        partitions: record.settings.partitions.get(),
        retention: Some(v1::Retention {
            max_records: retention.count_max,
            max_age_ms: retention.max_age_ms,
            max_bytes: retention.max_bytes,
        }),
        hard_limit_bytes: record.settings.bytes_limit,
        record_count: record.record_count,
        bytes: record.bytes,
        first_id: first_id.map(|id| id.to_string()),
        last_id: last_id.map(|id| id.to_string()),
        lost_count: record.lost_count,
        group_count: record.group_count,
        created_at_ms: record.created_at_ms,
        quarantined: is_quarantined,
    }
}

/// Converts a record.
pub(crate) fn record(view: RecordView) -> v1::Record {
    let RecordView {
        id,
        partition,
        content,
    } = view;
    let partition_key = content.key.map(|key| key.as_str().to_owned());
    v1::Record {
        id: id.to_string(),
        partition,
        payload: Bytes::copy_from_slice(&content.payload),
        headers: content.headers,
        partition_key: partition_key.unwrap_or_default(),
    }
}
