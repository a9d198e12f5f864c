//! Random numbers from a seed.
//!
//! A separate generator, since the numbers of a seed must not change with the version of a library:
//! SplitMix64, as published by Steele, Lea and Flood in 2014.

use std::ops::Range;

/// A random sequence; the same seed gives the same sequence, on every machine and in every build.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A separate sequence for one purpose, so that the draws of one part of the simulation do not
    /// change those of another.
    pub(crate) fn of(seed: u64, purpose: &str) -> Self {
        let mut state = seed;
        for byte in purpose.bytes() {
            state = Self::new(state ^ u64::from(byte)).draw();
        }
        Self { state }
    }

    /// The next number of the full range.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of the range, which must not be empty.
    pub(crate) fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.draw() % (range.end - range.start)
    }

    /// True in this many of 1000 cases.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.within(0..1_000) < per_mille
    }

    /// One of the choices; there must be at least one.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let position = self.within(0..choices.len() as u64);
        &choices[usize::try_from(position).expect("a position within a slice")]
    }

    /// Shuffles the items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.within(0..end as u64 + 1);
            items.swap(
                end,
                usize::try_from(other).expect("a position within a slice"),
            );
        }
    }
}
