//! What a consumer group is created with (A31).

use crate::definition::Consumption;
use crate::limits::{ACK_TIMEOUT_MS_DEFAULT, DELIVERIES_DEFAULT, LEASE_MS_MAX};
use crate::rejection::difference;
use serde::{Deserialize, Serialize};

/// What a consumer group is created with. Checked where it is made, so that no command carries other
/// values; decoding trusts what was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSettings {
    mode: Consumption,
    /// Invariant: from 1 to [`LEASE_MS_MAX`].
    ack_timeout_ms: u64,
    deliveries_max: u32,
}

/// An ack timeout that no group may have, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an ack timeout of 1 to {LEASE_MS_MAX} ms, but it is {0}")]
pub struct AckTimeoutInvalid(pub u64);

impl GroupSettings {
    /// The settings of a group whose consumers share the stream by `mode`, have a record for
    /// `ack_timeout_ms` before it goes to another, and are given it `deliveries_max` times before it
    /// goes to the dead-letter stream; 0 times is no bound.
    ///
    /// # Errors
    /// [`AckTimeoutInvalid`] for an ack timeout of 0 or of more than a day.
    pub fn new(
        mode: Consumption,
        ack_timeout_ms: u64,
        deliveries_max: u32,
    ) -> Result<Self, AckTimeoutInvalid> {
        if !(1..=LEASE_MS_MAX).contains(&ack_timeout_ms) {
            return Err(AckTimeoutInvalid(ack_timeout_ms));
        }
        Ok(Self {
            mode,
            ack_timeout_ms,
            deliveries_max,
        })
    }

    /// The same in another mode.
    #[must_use]
    pub fn with_mode(self, mode: Consumption) -> Self {
        Self { mode, ..self }
    }

    /// What is other than `asked` for, in words.
    pub(super) fn differences(&self, asked: &Self) -> Vec<String> {
        let mode = |one: &Self| match one.mode {
            Consumption::Shared => "shared",
            Consumption::Exclusive => "exclusive",
            Consumption::KeyShared => "key_shared",
        };
        let ack_timeouts = (self.ack_timeout_ms, asked.ack_timeout_ms);
        let differences = [
            difference("mode", (mode(self), mode(asked))),
            difference("ack_timeout_ms", ack_timeouts),
            difference(
                "deliveries_max",
                (self.deliveries_max, asked.deliveries_max),
            ),
        ];
        differences.into_iter().flatten().collect()
    }

    /// How its consumers share the stream.
    #[must_use]
    pub fn mode(&self) -> Consumption {
        self.mode
    }

    /// How long a consumer has a record before it goes to another, in milliseconds.
    #[must_use]
    pub fn ack_timeout_ms(&self) -> u64 {
        self.ack_timeout_ms
    }

    /// Deliveries of one record before it goes to the dead-letter stream; 0 is no bound.
    #[must_use]
    pub fn deliveries_max(&self) -> u32 {
        self.deliveries_max
    }
}

/// What the manual gives a group that is created without saying (A31).
impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            mode: Consumption::Shared,
            ack_timeout_ms: ACK_TIMEOUT_MS_DEFAULT,
            deliveries_max: DELIVERIES_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_no_ack_timeout_of_nothing_or_of_more_than_a_day() {
        let settings = |ack_timeout_ms| GroupSettings::new(Consumption::Shared, ack_timeout_ms, 0);
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
