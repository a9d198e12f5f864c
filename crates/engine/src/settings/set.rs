//! Changing the settings of the cluster (A42).

use crate::limits::{REQUESTS_MAX_HIGHEST, REQUESTS_MAX_LOWEST};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{ClusterSettings, ClusterSettingsRecord};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Changes the settings that it gives; the others stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetClusterSettings {
    /// The bound on remembered request ids (ADR 0041).
    pub requests_max: Option<u64>,
}

impl SetClusterSettings {
    /// Checks the values, so that a server can refuse them before the proposal.
    ///
    /// # Errors
    /// [`Rejection::SettingOutOfRange`] names the first value that is out of its range.
    pub fn check(&self) -> Result<(), Rejection> {
        let range = REQUESTS_MAX_LOWEST..=REQUESTS_MAX_HIGHEST;
        match self.requests_max {
            Some(value) if !range.contains(&value) => Err(Rejection::SettingOutOfRange {
                name: "max_request_ids".to_owned(),
                value,
                min: *range.start(),
                max: *range.end(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        self.check()?;
        let stored = turn.get::<ClusterSettings>(&())?;
        let before = stored.map_or_else(ClusterSettingsRecord::default, |stored| *stored);
        let after = ClusterSettingsRecord {
            requests_max: self.requests_max.unwrap_or(before.requests_max),
        };
        if after != before {
            turn.put::<ClusterSettings>(&(), after);
        }
        Ok(Done {})
    }
}
