//! A namespace.

use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// A namespace.
#[derive(Debug, Serialize)]
pub(crate) struct NamespaceView {
    name: String,
    created_at_ms: u64,
}

impl From<v1::Namespace> for NamespaceView {
    fn from(namespace: v1::Namespace) -> Self {
        Self {
            name: namespace.name,
            created_at_ms: namespace.created_at_ms,
        }
    }
}

impl Row for NamespaceView {
    const HEADINGS: &'static [&'static str] = &["NAME", "CREATED"];

    fn cells(&self) -> Vec<String> {
        vec![self.name.clone(), time::show(self.created_at_ms)]
    }
}
