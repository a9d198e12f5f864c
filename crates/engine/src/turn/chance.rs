//! The random numbers of a turn, identical on every replica (design rule 1).
//!
//! They are derived from the entry's seed with SipHash-2-4, keyed by the seed. An observer of some of them, such as a
//! delay or a task token, can compute neither the seed nor other numbers (ADR 0024).

use super::Turn;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// The source of a turn's random numbers.
pub(super) struct Chance {
    seed: u64,
    /// The command's position in its entry.
    position: u64,
    /// The number of random numbers drawn so far.
    drawn_count: u64,
}

impl Chance {
    /// The source for the command at `position` in an entry with this seed.
    pub(super) fn new(seed: u64, position: u64) -> Self {
        Self {
            seed,
            position,
            drawn_count: 0,
        }
    }

    fn draw(&mut self) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.seed, 0);
        hasher.write_u64(self.position.to_le());
        hasher.write_u64(self.drawn_count.to_le());
        self.drawn_count += 1;
        hasher.finish()
    }
}

impl Turn<'_, '_> {
    /// The next random number.
    pub(crate) fn random(&mut self) -> u64 {
        self.chance.draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_draw_of_each_command_and_seed_is_another_and_the_same_in_every_build() {
        let draws = |seed, position| {
            let mut chance = Chance::new(seed, position);
            [chance.draw(), chance.draw()]
        };
        let all = [draws(1, 1), draws(1, 2), draws(2, 1)].concat();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        // SipHash-2-4 of the position and the count, with the seed as the key, by another implementation.
        assert_eq!(draws(1, 1), [0x49c6_ddb1_8216_3ce2, 0xecf6_2563_07f0_e652]);
        // The test vector of the reference implementation: key 0, 1, … 15 and empty input.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let hasher = SipHasher24::new_with_keys(key[0], key[1]);
        assert_eq!(hasher.finish(), 0x726f_db47_dd0e_0e31);
    }
}
