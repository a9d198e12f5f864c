//! A record as its handler sees it.

use super::RecordError;
use super::member::Member;
use bytes::Bytes;
use flotilla_api::v1;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A record as its handler sees it.
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
    /// If the payload has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        serde_json::from_slice(&self.record.payload).map_err(|error| {
            RecordError::new(format!(
                "expected a payload that the handler can decode, but {error}"
            ))
        })
    }

    /// The payload as it was appended.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.record.payload
    }

    /// The record id: its time in milliseconds and its sequence number within that time.
    #[must_use]
    pub fn stream_id(&self) -> &str {
        &self.record.id
    }

    /// The record's headers.
    #[must_use]
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.record.headers
    }

    /// The record's partition.
    #[must_use]
    pub fn partition(&self) -> u32 {
        self.record.partition
    }

    /// The partition key that it was appended with.
    #[must_use]
    pub fn partition_key(&self) -> Option<&str> {
        Some(self.record.partition_key.as_str()).filter(|key| !key.is_empty())
    }

    /// The number of the delivery, from 1.
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
