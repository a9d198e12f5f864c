//! Consumer groups, deliveries and what is pending.

use super::stream;
use flotilla_api::v1;
use flotilla_engine::definition::Consumption;
use flotilla_engine::ids::{ConsumerName, StreamName};
use flotilla_engine::tables::ConsumerRecord;
use flotilla_engine::view::{DeliveredView, GroupView, PendingState, PendingView};

/// A group as a message, without its consumers.
pub(crate) fn message(stream: &StreamName, view: GroupView) -> v1::GroupInfo {
    let settings = view.record.settings;
    v1::GroupInfo {
        stream: stream.to_string(),
        group: view.name.to_string(),
        mode: mode(settings.mode()).into(),
        ack_timeout_ms: settings.ack_timeout_ms(),
        deliveries_max: settings.deliveries_max(),
        consumers_count: view.record.consumers_count,
        consumers: Vec::new(),
        pending_count: view.pending_count.into(),
        lag: view.lag,
        acked_count: view.record.acked_count,
        dead_letters_count: view.record.dead_count,
        lost_count: view.record.lost_count,
        created_at_ms: view.record.created_at_ms,
        quarantined: view.is_quarantined,
    }
}

/// A group's mode as a message.
pub(crate) fn mode(mode: Consumption) -> v1::GroupMode {
    match mode {
        Consumption::Shared => v1::GroupMode::Shared,
        Consumption::Exclusive => v1::GroupMode::Exclusive,
        Consumption::KeyShared => v1::GroupMode::KeyShared,
    }
}

/// A consumer as a message.
pub(crate) fn consumer((name, record): (ConsumerName, ConsumerRecord)) -> v1::GroupConsumer {
    v1::GroupConsumer {
        name: name.to_string(),
        joined_at_ms: record.joined_at_ms,
        heard_at_ms: record.heard_at_ms,
    }
}

/// A record in a consumer's hands as a message.
pub(crate) fn delivery(view: DeliveredView) -> v1::Delivery {
    v1::Delivery {
        record: Some(stream::record(view.record)),
        attempt: view.attempt,
        ack_due_at_ms: view.expires_at_ms,
    }
}

/// A delivery that was not acknowledged as a message.
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
