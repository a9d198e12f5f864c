//! Converts the events of a run's history to messages.

use flotilla_api::v1;
use flotilla_engine::view::EventView;

/// Converts an event.
pub(crate) fn message(view: EventView) -> v1::Event {
    v1::Event {
        seq: view.seq,
        at_ms: view.at_ms,
        raft_index: view.raft_index,
        r#type: view.type_name.to_owned(),
        step: view.step.unwrap_or_default(),
        detail: view.detail,
        attributes: view.attributes.into(),
        node_id: view.node.0,
        term: view.term,
        scope: view.scope,
        visit: view.visit,
        redacted: false,
    }
}
