//! The settings of a consumer group (A31).

use crate::definition::GroupMode;
use crate::difference::difference;
use crate::limits::{ACK_TIMEOUT_MS_DEFAULT, DELIVERIES_DEFAULT, LEASE_MS_MAX};
use serde::{Deserialize, Serialize};

/// The settings of a consumer group. Validated where they are made, so that no command carries invalid values; decoding
/// trusts validated settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSettings {
    mode: GroupMode,
    /// Invariant: from 1 to [`LEASE_MS_MAX`].
    ack_timeout_ms: u64,
    max_deliveries: u32,
}

/// An invalid ack timeout, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an ack timeout of 1 to {LEASE_MS_MAX} ms, but it is {0}")]
pub struct AckTimeoutInvalid(pub u64);

impl GroupSettings {
    /// Creates settings. Consumers share the stream by `mode`, hold a record for `ack_timeout_ms`, and get it at most
    /// `max_deliveries` times before it goes to the dead-letter stream; 0 means unlimited.
    ///
    /// # Errors
    /// [`AckTimeoutInvalid`] for an ack timeout of 0 or of more than a day.
    pub fn new(
        mode: GroupMode,
        ack_timeout_ms: u64,
        max_deliveries: u32,
    ) -> Result<Self, AckTimeoutInvalid> {
        if !(1..=LEASE_MS_MAX).contains(&ack_timeout_ms) {
            return Err(AckTimeoutInvalid(ack_timeout_ms));
        }
        Ok(Self {
            mode,
            ack_timeout_ms,
            max_deliveries,
        })
    }

    /// The same settings with another mode.
    #[must_use]
    pub fn with_mode(self, mode: GroupMode) -> Self {
        Self { mode, ..self }
    }

    /// Describes the settings that differ from `requested`.
    pub(crate) fn differences(&self, requested: &Self) -> Vec<String> {
        let mode = |one: &Self| match one.mode {
            GroupMode::Shared => "shared",
            GroupMode::Exclusive => "exclusive",
            GroupMode::KeyShared => "key_shared",
        };
        let differences = [
            difference("mode", mode(self), mode(requested)),
            difference(
                "ack_timeout_ms",
                self.ack_timeout_ms,
                requested.ack_timeout_ms,
            ),
            difference(
                "max_deliveries",
                self.max_deliveries,
                requested.max_deliveries,
            ),
        ];
        differences.into_iter().flatten().collect()
    }

    /// How its consumers share the stream.
    #[must_use]
    pub fn mode(&self) -> GroupMode {
        self.mode
    }

    /// How long a consumer holds a record before it is redelivered, in milliseconds.
    #[must_use]
    pub fn ack_timeout_ms(&self) -> u64 {
        self.ack_timeout_ms
    }

    /// The maximum number of deliveries of a record before it goes to the dead-letter stream; 0 means unlimited.
    #[must_use]
    pub fn max_deliveries(&self) -> u32 {
        self.max_deliveries
    }
}

/// The manual's defaults (A31).
impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            mode: GroupMode::Shared,
            ack_timeout_ms: ACK_TIMEOUT_MS_DEFAULT,
            max_deliveries: DELIVERIES_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_no_ack_timeout_of_nothing_or_of_more_than_a_day() {
        let settings = |ack_timeout_ms| GroupSettings::new(GroupMode::Shared, ack_timeout_ms, 0);
        for ack_timeout_ms in [0, LEASE_MS_MAX + 1, u64::MAX] {
            let refusal = AckTimeoutInvalid(ack_timeout_ms);
            assert_eq!(settings(ack_timeout_ms), Err(refusal));
        }
        for ack_timeout_ms in [1, LEASE_MS_MAX] {
            let made = settings(ack_timeout_ms).expect("it is within the bounds");
            assert_eq!(made.ack_timeout_ms(), ack_timeout_ms);
        }
    }
}
