//! Random numbers from a seed: the same inputs again for the same seed.

/// SplitMix64: small, and good enough to pick places in a text.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from 0 up to but excluding `bound`; 0 for the bound 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).expect("a length fits into 64 bits");
        usize::try_from(self.bits() % bound).expect("it is below a usize")
    }

    /// One of the items.
    ///
    /// # Panics
    /// When there are no items.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_decides_all_that_follows() {
        let draws = |seed| {
            let mut random = Random::new(seed);
            [(); 8].map(|()| random.below(1_000))
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert!(draws(7).iter().all(|number| *number < 1_000));
        assert_eq!(Random::new(1).below(0), 0);
    }
}
