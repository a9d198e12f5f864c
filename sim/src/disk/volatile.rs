//! Contents of which a power cut leaves a prefix of the writes.

use crate::random::Random;

/// Contents that accept writes.
pub(crate) trait Contents: Clone {
    /// One write: it is done completely, or not at all.
    type Write;

    /// Performs a write.
    fn carry_out(&mut self, write: &Self::Write);
}

/// Contents of which a power cut leaves a prefix of the writes.
#[derive(Debug)]
pub(crate) struct Volatile<C: Contents> {
    current: C,
    durable: C,
    /// Writes since the last sync, oldest first.
    unsynced: Vec<C::Write>,
}

impl<C: Contents + Default> Default for Volatile<C> {
    fn default() -> Self {
        Self {
            current: C::default(),
            durable: C::default(),
            unsynced: Vec::new(),
        }
    }
}

impl<C: Contents> Volatile<C> {
    /// The contents that readers see.
    pub(crate) fn current(&self) -> &C {
        &self.current
    }

    /// Performs a write; a power cut may undo it.
    pub(crate) fn write(&mut self, write: C::Write) {
        self.current.carry_out(&write);
        self.unsynced.push(write);
    }

    /// Syncs everything written so far.
    pub(crate) fn sync(&mut self) {
        for write in self.unsynced.drain(..) {
            self.durable.carry_out(&write);
        }
    }

    /// Replaces the contents and syncs them.
    pub(crate) fn replace(&mut self, contents: C) {
        self.unsynced.clear();
        self.durable = contents.clone();
        self.current = contents;
    }

    /// Keeps the synced contents and some of the later writes, oldest first. Returns how many were lost.
    pub(crate) fn cut_power(&mut self, random: &mut Random) -> u64 {
        let written = self.unsynced.len() as u64;
        let spared = random.within(0..written + 1);
        for (_, write) in (0..spared).zip(self.unsynced.drain(..)) {
            self.durable.carry_out(&write);
        }
        self.unsynced.clear();
        self.current = self.durable.clone();
        written - spared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Text(String);

    impl Contents for Text {
        type Write = char;

        fn carry_out(&mut self, write: &char) {
            self.0.push(*write);
        }
    }

    #[test]
    fn a_power_cut_leaves_what_was_synced_and_a_prefix_of_the_rest() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..64 {
            let mut text = Volatile::<Text>::default();
            text.write('a');
            text.sync();
            text.write('b');
            text.write('c');
            assert_eq!(text.current().0, "abc");
            text.cut_power(&mut Random::new(seed));
            seen.insert(text.current().0.clone());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["a", "ab", "abc"]);
    }
}
