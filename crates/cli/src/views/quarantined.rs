//! A quarantined item.

use super::{name, or_dash};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// A quarantined item.
#[derive(Debug, Serialize)]
pub(crate) struct QuarantinedView {
    kind: String,
    /// `None` if the item no longer exists.
    namespace: Option<String>,
    name: String,
    quarantined_at_ms: u64,
    raft_index: u64,
}

impl From<v1::QuarantinedItem> for QuarantinedView {
    fn from(item: v1::QuarantinedItem) -> Self {
        Self {
            kind: name(item.kind()),
            namespace: Some(item.namespace).filter(|namespace| !namespace.is_empty()),
            name: item.name,
            quarantined_at_ms: item.quarantined_at_ms,
            raft_index: item.raft_index,
        }
    }
}

impl Row for QuarantinedView {
    const HEADINGS: &'static [&'static str] = &["KIND", "NAMESPACE", "NAME", "SINCE", "INDEX"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.kind.clone(),
            or_dash(self.namespace.as_deref()),
            self.name.clone(),
            time::show(self.quarantined_at_ms),
            self.raft_index.to_string(),
        ]
    }
}
