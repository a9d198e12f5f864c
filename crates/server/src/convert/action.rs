//! Actions.

use flotilla_api::v1;
use flotilla_engine::tables::{ActionKind, WasmLimits};
use flotilla_engine::view::ActionView;

/// An action as a message.
pub(crate) fn message(view: ActionView) -> v1::Action {
    let ActionView {
        name,
        record,
        module_bytes,
    } = view;
    let (action_type, limits) = kind(&record.kind);
    v1::Action {
        name: name.to_string(),
        r#type: action_type.into(),
        version: record.version,
        enabled: record.is_enabled,
        timeout_ms: record.timeout_ms,
        max_retries: record.max_retries,
        retry_delay_ms: record.retry_delay_ms,
        description: record.description.unwrap_or_default(),
        memory_bytes_max: limits.map(|limits| limits.memory_bytes_max),
        output_bytes_max: limits.map(|limits| limits.output_bytes_max),
        wasm_module_bytes: module_bytes,
        created_at_ms: record.created_at_ms,
        updated_at_ms: record.updated_at_ms,
    }
}

fn kind(kind: &ActionKind) -> (v1::ActionType, Option<WasmLimits>) {
    match kind {
        ActionKind::User => (v1::ActionType::User, None),
        ActionKind::Wasm { limits, .. } => (v1::ActionType::Wasm, Some(*limits)),
    }
}
