//! Converts triggers to messages.

use super::group;
use flotilla_api::v1;
use flotilla_engine::ids::Namespace;
use flotilla_engine::view::{TriggerState, TriggerView};

/// Converts a trigger; `namespace` is its workflow's.
pub(crate) fn message(namespace: &Namespace, view: TriggerView) -> v1::Trigger {
    let trigger = view.trigger;
    v1::Trigger {
        stream: trigger.stream.to_string(),
        namespace: trigger.namespace.as_ref().unwrap_or(namespace).to_string(),
        consumer_group: trigger.consumer_group.to_string(),
        mode: group::mode(trigger.consumption).into(),
        batch_size: trigger.batch_size,
        batch_timeout_ms: trigger.batch_timeout_ms,
        state: state(view.state).into(),
        lag: view.lag,
        run_count: view.counts.run_count,
        record_count: view.counts.record_count,
        refused_count: view.counts.refused_count,
        lost_count: view.lost_count,
        last_fired_at_ms: view.counts.last_fired_ms,
        when: trigger.when.map(|when| when.text),
        skipped_count: view.counts.skipped_count,
        since_ms: view.counts.since_ms,
    }
}

fn state(state: TriggerState) -> v1::TriggerState {
    match state {
        TriggerState::Active => v1::TriggerState::Active,
        TriggerState::NoStream => v1::TriggerState::NoStream,
        TriggerState::Disabled => v1::TriggerState::Disabled,
        TriggerState::Quarantined => v1::TriggerState::Quarantined,
        TriggerState::Quota => v1::TriggerState::Quota,
    }
}
