//! A key with its value.

use super::json;
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;
use serde_json::Value;

/// A key.
#[derive(Debug, Serialize)]
pub(crate) struct KeyView {
    key: String,
    value: Value,
    version: u64,
    expires_at_ms: Option<u64>,
}

impl From<v1::KeyValue> for KeyView {
    fn from(item: v1::KeyValue) -> Self {
        Self {
            value: json::value(&item.value),
            key: item.key,
            version: item.version,
            expires_at_ms: item.expires_at_ms,
        }
    }
}

impl Row for KeyView {
    const HEADINGS: &'static [&'static str] = &["KEY", "VERSION", "EXPIRES", "VALUE"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.key.clone(),
            self.version.to_string(),
            time::show_optional(self.expires_at_ms),
            json::one_line(&self.value),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_key_has_the_published_fields() {
        let view = KeyView::from(v1::KeyValue {
            key: "config/limit".to_owned(),
            value: "100".into(),
            version: 7,
            expires_at_ms: None,
        });
        expect![[r#"{"key":"config/limit","value":100,"version":7,"expires_at_ms":null}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
