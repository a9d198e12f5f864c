//! Converts keys and values to messages.

use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::KeyRecord;
use flotilla_engine::ids::KvKey;

/// Converts a key.
pub(crate) fn message(key: KvKey, record: KeyRecord) -> v1::KeyValue {
    v1::KeyValue {
        key: key.to_string(),
        value: Bytes::copy_from_slice(&record.value),
        version: record.version,
        expires_at_ms: record.expires_at_ms,
    }
}
