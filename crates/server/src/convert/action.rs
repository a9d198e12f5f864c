//! Converts actions to messages.

use flotilla_api::v1;
use flotilla_engine::view::ActionView;
use flotilla_engine::{ActionType, WasmLimits};

/// Converts an action.
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
        max_memory_bytes: limits.map(|limits| limits.max_memory_bytes),
        max_output_bytes: limits.map(|limits| limits.max_output_bytes),
        wasm_module_bytes: module_bytes,
        created_at_ms: record.created_at_ms,
        updated_at_ms: record.updated_at_ms,
    }
}

fn kind(kind: &ActionType) -> (v1::ActionType, Option<WasmLimits>) {
    match kind {
        ActionType::User => (v1::ActionType::User, None),
        ActionType::Wasm { limits, .. } => (v1::ActionType::Wasm, Some(*limits)),
    }
}
