//! An action or a group that a worker handles: the manual's process tracking.

use super::name;
use flotilla_client::v1;
use serde::Serialize;

/// A process of a worker, with counts.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessView {
    pub(super) name: String,
    kind: String,
    run_count: u64,
    fail_count: u64,
    last_run_at_ms: Option<u64>,
}

impl From<v1::ProcessRecord> for ProcessView {
    fn from(process: v1::ProcessRecord) -> Self {
        Self {
            kind: name(process.kind()),
            name: process.name,
            run_count: process.run_count,
            fail_count: process.fail_count,
            last_run_at_ms: process.last_run_at_ms,
        }
    }
}
