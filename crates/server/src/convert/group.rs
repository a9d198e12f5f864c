//! Converts consumer groups, deliveries and pending records to messages.

use super::stream;
use flotilla_api::v1;
use flotilla_engine::ConsumerRecord;
use flotilla_engine::definition::GroupMode;
use flotilla_engine::ids::{ConsumerName, StreamName};
use flotilla_engine::view::{DeliveredView, GroupView, PendingState, PendingView};

/// Converts a group, without its consumers.
pub(crate) fn message(stream: &StreamName, view: GroupView) -> v1::GroupInfo {
    let settings = view.record.settings;
    v1::GroupInfo {
        stream: stream.to_string(),
        group: view.name.to_string(),
        mode: mode(settings.mode()).into(),
        ack_timeout_ms: settings.ack_timeout_ms(),
        max_deliveries: settings.max_deliveries(),
        consumer_count: view.record.consumer_count,
        consumers: Vec::new(),
        pending_count: view.pending_count.into(),
        lag: view.lag,
        acked_count: view.record.acked_count,
        dead_letter_count: view.record.dead_count,
        lost_count: view.record.lost_count,
        created_at_ms: view.record.created_at_ms,
        quarantined: view.is_quarantined,
    }
}

/// Converts a group mode.
pub(crate) fn mode(mode: GroupMode) -> v1::GroupMode {
    match mode {
        GroupMode::Shared => v1::GroupMode::Shared,
        GroupMode::Exclusive => v1::GroupMode::Exclusive,
        GroupMode::KeyShared => v1::GroupMode::KeyShared,
    }
}

/// Converts a consumer.
pub(crate) fn consumer((name, record): (ConsumerName, ConsumerRecord)) -> v1::GroupConsumer {
    v1::GroupConsumer {
        name: name.to_string(),
        joined_at_ms: record.joined_at_ms,
        last_heartbeat_at_ms: record.last_heartbeat_at_ms,
    }
}

/// Converts a delivery.
pub(crate) fn delivery(view: DeliveredView) -> v1::Delivery {
    v1::Delivery {
        record: Some(stream::record(view.record)),
        attempt: view.attempt,
        ack_deadline_at_ms: view.expires_at_ms,
    }
}

/// Converts a delivery that was not acknowledged.
pub(crate) fn pending(view: PendingView) -> v1::PendingRecord {
    let (consumer, due_at_ms) = match view.state {
        PendingState::InFlight {
            consumer,
            expires_at_ms,
            ..
        } => (consumer.to_string(), expires_at_ms),
        PendingState::Waiting { due_ms } => (String::new(), due_ms),
    };
    v1::PendingRecord {
        id: view.id.to_string(),
        partition: view.partition,
        consumer,
        attempts: view.attempts,
        due_at_ms,
    }
}
