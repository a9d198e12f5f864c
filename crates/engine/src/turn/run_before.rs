//! What is kept of a run as it was before the turn.

use crate::tables::{AttributeValue, DefinitionNumber, RunRecord, RunStatus};
use std::collections::BTreeMap;

/// What the end of a turn compares a run with.
pub(crate) struct RunBefore {
    pub(crate) definition: DefinitionNumber,
    pub(crate) status: RunStatus,
    pub(crate) completed_at_ms: Option<u64>,
    pub(crate) attributes: BTreeMap<u16, AttributeValue>,
    pub(crate) payloads_count: u64,
}

impl RunBefore {
    pub(super) fn of(run: &RunRecord) -> Self {
        Self {
            definition: run.definition,
            status: run.status,
            completed_at_ms: run.completed_at_ms,
            attributes: run.attributes.clone(),
            payloads_count: run.payloads_count,
        }
    }

    /// Whether the index rows of the run are still the same.
    pub(crate) fn is_indexed_like(&self, run: &RunRecord) -> bool {
        self.status == run.status
            && self.definition == run.definition
            && self.completed_at_ms == run.completed_at_ms
            && self.attributes == run.attributes
    }
}
