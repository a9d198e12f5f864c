//! A registered action.

use super::{name, or_dash};
use crate::output::Row;
use flotilla_client::v1;
use serde::Serialize;

/// An action.
#[derive(Debug, Serialize)]
pub(crate) struct ActionView {
    name: String,
    #[serde(rename = "type")]
    action_type: String,
    version: u32,
    enabled: bool,
    timeout_ms: u64,
    max_retries: u32,
    retry_delay_ms: u64,
    description: Option<String>,
    max_memory_bytes: Option<u64>,
    max_output_bytes: Option<u64>,
    wasm_module_bytes: Option<u64>,
    created_at_ms: u64,
    updated_at_ms: u64,
}

impl ActionView {
    /// The action as one line.
    pub(crate) fn title(&self) -> String {
        format!(
            "{} ({}) version {}",
            self.name, self.action_type, self.version
        )
    }
}

impl From<v1::Action> for ActionView {
    fn from(action: v1::Action) -> Self {
        Self {
            action_type: name(action.r#type()),
            name: action.name,
            version: action.version,
            enabled: action.enabled,
            timeout_ms: action.timeout_ms,
            max_retries: action.max_retries,
            retry_delay_ms: action.retry_delay_ms,
            description: Some(action.description).filter(|text| !text.is_empty()),
            max_memory_bytes: action.max_memory_bytes,
            max_output_bytes: action.max_output_bytes,
            wasm_module_bytes: action.wasm_module_bytes,
            created_at_ms: action.created_at_ms,
            updated_at_ms: action.updated_at_ms,
        }
    }
}

impl Row for ActionView {
    const HEADINGS: &'static [&'static str] = &[
        "NAME",
        "TYPE",
        "VERSION",
        "ENABLED",
        "TIMEOUT",
        "RETRIES",
        "DELAY",
        "DESCRIPTION",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.action_type.clone(),
            self.version.to_string(),
            self.enabled.to_string(),
            format!("{} ms", self.timeout_ms),
            self.max_retries.to_string(),
            format!("{} ms", self.retry_delay_ms),
            or_dash(self.description.as_deref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_action_has_the_published_fields() {
        let view = ActionView::from(v1::Action {
            name: "charge".to_owned(),
            r#type: v1::ActionType::User.into(),
            version: 1,
            enabled: true,
            timeout_ms: 30_000,
            max_retries: 3,
            retry_delay_ms: 1_000,
            created_at_ms: 5,
            updated_at_ms: 6,
            ..v1::Action::default()
        });
        expect![[r#"{"name":"charge","type":"user","version":1,"enabled":true,"timeout_ms":30000,"max_retries":3,"retry_delay_ms":1000,"description":null,"max_memory_bytes":null,"max_output_bytes":null,"wasm_module_bytes":null,"created_at_ms":5,"updated_at_ms":6}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
