//! What a handler knows of its record.

use super::RecordError;
use super::member::Member;
use bytes::Bytes;
use flotilla_api::v1;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a handler knows of its record.
#[derive(Clone, Debug)]
pub struct StreamContext {
    member: Arc<Member>,
    record: Arc<v1::Record>,
    attempt: u32,
}

impl StreamContext {
    pub(super) fn new(member: Arc<Member>, record: Arc<v1::Record>, attempt: u32) -> Self {
        Self {
            member,
            record,
            attempt,
        }
    }

    /// The payload, decoded from JSON.
    ///
    /// # Errors
    /// When it has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        serde_json::from_slice(&self.record.payload).map_err(|error| {
            RecordError::new(format!(
                "expected a payload that the handler knows, but {error}"
            ))
        })
    }

    /// The payload as it was appended.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.record.payload
    }

    /// The record's id: its time in milliseconds and its place among those of that time.
    #[must_use]
    pub fn stream_id(&self) -> &str {
        &self.record.id
    }

    /// The record's headers.
    #[must_use]
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.record.headers
    }

    /// The partition that it lies in.
    #[must_use]
    pub fn partition(&self) -> u32 {
        self.record.partition
    }

    /// The key that it was appended with.
    #[must_use]
    pub fn partition_key(&self) -> Option<&str> {
        Some(self.record.partition_key.as_str()).filter(|key| !key.is_empty())
    }

    /// Which delivery of the record this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.member.setup.stream
    }

    /// The consumer group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.member.setup.group
    }

    /// This consumer's name within the group.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.member.setup.consumer
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match self.member.client.namespace() {
            "" => "default",
            namespace => namespace,
        }
    }
}
