//! A record that was delivered but not acknowledged.

use super::or_dash;
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// A delivery that is not settled.
#[derive(Debug, Serialize)]
pub(crate) struct PendingView {
    stream_id: String,
    partition: u32,
    /// The consumer that has it; `None` while it waits for redelivery.
    consumer: Option<String>,
    attempts: u32,
    due_at_ms: u64,
}

impl From<v1::PendingRecord> for PendingView {
    fn from(pending: v1::PendingRecord) -> Self {
        Self {
            stream_id: pending.id,
            partition: pending.partition,
            consumer: Some(pending.consumer).filter(|consumer| !consumer.is_empty()),
            attempts: pending.attempts,
            due_at_ms: pending.due_at_ms,
        }
    }
}

impl Row for PendingView {
    const HEADINGS: &'static [&'static str] = &["ID", "PARTITION", "CONSUMER", "DELIVERIES", "DUE"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.stream_id.clone(),
            self.partition.to_string(),
            or_dash(self.consumer.as_deref()),
            self.attempts.to_string(),
            time::show(self.due_at_ms),
        ]
    }
}
