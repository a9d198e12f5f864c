//! The conditions of the network.

use crate::random::Random;

/// The conditions of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weather {
    /// The minimum delay of a message, in milliseconds, from 1.
    pub(crate) delay_ms_min: u64,
    /// The usual maximum, in milliseconds.
    pub(crate) delay_ms_max: u64,
    /// How many of 1000 messages are delayed, by a factor of up to ten.
    pub(crate) stragglers: u64,
    /// How many of 1000 messages are lost.
    pub(crate) losses: u64,
    /// How many of 1000 messages arrive twice.
    pub(crate) echoes: u64,
}

impl Weather {
    /// A quiet local network.
    pub(crate) const FAIR: Self = Self {
        delay_ms_min: 1,
        delay_ms_max: 2,
        stragglers: 0,
        losses: 0,
        echoes: 0,
    };
    /// A busy network.
    pub(crate) const USUAL: Self = Self {
        delay_ms_min: 1,
        delay_ms_max: 5,
        stragglers: 20,
        losses: 1,
        echoes: 5,
    };
    /// A wide-area network.
    pub(crate) const SLOW: Self = Self {
        delay_ms_min: 20,
        delay_ms_max: 120,
        stragglers: 50,
        losses: 1,
        echoes: 5,
    };
    /// Machines in regions that are far from each other.
    pub(crate) const FAR: Self = Self {
        delay_ms_min: 60,
        delay_ms_max: 120,
        stragglers: 10,
        losses: 1,
        echoes: 5,
    };
    /// A network that is about to fail.
    pub(crate) const LOSSY: Self = Self {
        delay_ms_min: 1,
        delay_ms_max: 20,
        stragglers: 100,
        losses: 60,
        echoes: 60,
    };

    pub(super) fn delay_ms(&self, random: &mut Random) -> u64 {
        let delay_ms = random.within(self.delay_ms_min..self.delay_ms_max + 1);
        let is_straggler = random.chance(self.stragglers);
        delay_ms
            * if is_straggler {
                random.within(2..11)
            } else {
                1
            }
    }

    pub(super) fn loses(&self, random: &mut Random) -> bool {
        random.chance(self.losses)
    }

    pub(super) fn echo_ms(&self, random: &mut Random) -> Option<u64> {
        random.chance(self.echoes).then(|| random.within(1..2_000))
    }
}
