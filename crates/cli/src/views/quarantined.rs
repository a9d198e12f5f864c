//! Something that was set aside after a bug.

use super::{name, or_dash};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// Something that was set aside.
#[derive(Debug, Serialize)]
pub(crate) struct QuarantinedView {
    kind: String,
    /// `None` once it is gone.
    namespace: Option<String>,
    name: String,
    at_ms: u64,
    raft_index: u64,
}

impl From<v1::Quarantined> for QuarantinedView {
    fn from(item: v1::Quarantined) -> Self {
        Self {
            kind: name(item.kind()),
            namespace: Some(item.namespace).filter(|namespace| !namespace.is_empty()),
            name: item.name,
            at_ms: item.at_ms,
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
            time::show(self.at_ms),
            self.raft_index.to_string(),
        ]
    }
}
