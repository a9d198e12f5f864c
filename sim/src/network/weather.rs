//! How the network is.

use crate::random::Random;

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weather {
    /// What a message takes at least, in milliseconds, from 1.
    pub(crate) delay_ms_min: u64,
    /// And usually at most, in milliseconds.
    pub(crate) delay_ms_max: u64,
    /// How many messages of a thousand take up to ten times longer.
    pub(crate) stragglers: u64,
    /// How many messages of a thousand are lost.
    pub(crate) losses: u64,
    /// How many messages of a thousand arrive twice.
    pub(crate) echoes: u64,
}

impl Weather {
    /// A quiet network within one room.
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
    /// A network far away.
    pub(crate) const SLOW: Self = Self {
        delay_ms_min: 20,
        delay_ms_max: 120,
        stragglers: 50,
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
