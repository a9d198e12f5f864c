//! What operators set for the whole cluster (A42).

use super::tables;
use crate::limits::REQUESTS_MAX_DEFAULT;
use serde::{Deserialize, Serialize};

tables! {
    /// One row, from the first change on. Lives as long as the cluster.
    102 ClusterSettings(()) -> ClusterSettingsRecord, HOT;
}

/// The settings of the cluster. They are a part of the state, because all nodes must decide by the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSettingsRecord {
    /// How many request ids are remembered before namespaces that have their share are refused (ADR 0041).
    pub requests_max: u64,
}

/// What holds until an operator sets something else.
impl Default for ClusterSettingsRecord {
    fn default() -> Self {
        Self {
            requests_max: REQUESTS_MAX_DEFAULT,
        }
    }
}
