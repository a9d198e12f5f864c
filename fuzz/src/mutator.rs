//! Makes inputs from other inputs.
//!
//! The mutations do not see coverage, so they know what breaks readers: pieces of the language in the wrong
//! place, numbers at their bounds, texts that end too soon, pieces of two inputs in one.

use crate::random::Random;

/// The maximum size of an input, in bytes: larger inputs make readers slower, but test nothing new.
const INPUT_BYTES_MAX: usize = 16 << 10;
/// The number of changes in one mutation: most have one, few have many.
const CHANGES_MAX: usize = 6;
/// The longest piece that one change moves, in bytes.
const PIECE_BYTES_MAX: usize = 64;

const BYTES: [u8; 12] = [
    0, 1, 0x7f, 0x80, 0xff, 0xfb, 0xfc, 0xfd, b'\n', b' ', b'"', b'0',
];
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
];

/// Makes inputs.
pub(crate) struct Mutator {
    random: Random,
    tokens: &'static [&'static str],
}

impl Mutator {
    pub(crate) fn new(seed: u64, tokens: &'static [&'static str]) -> Self {
        Self {
            random: Random::new(seed),
            tokens,
        }
    }

    /// One of the inputs, changed.
    pub(crate) fn mutate(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.random.pick(inputs).clone();
        let changes_count = 1 + self
            .random
            .below(CHANGES_MAX)
            .min(self.random.below(CHANGES_MAX));
        for _ in 0..changes_count {
            self.change(&mut input, inputs);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        match self.random.below(8) {
            0 => self.flip(input),
            1 => self.set(input),
            2 => {
                let (from, to) = self.piece(input);
                input.drain(from..to);
            }
            3 => {
                let (from, to) = self.piece(input);
                let copy = input[from..to].to_vec();
                self.put(input, &copy);
            }
            4 => self.put_token(input),
            5 => self.set_number(input),
            6 => {
                let other = self.random.pick(inputs);
                let (from, to) = self.piece(other);
                let piece = other[from..to].to_vec();
                self.put(input, &piece);
            }
            _ => {
                let length = self.random.below(input.len() + 1);
                input.truncate(length);
            }
        }
    }

    fn flip(&mut self, input: &mut [u8]) {
        let bit = self.random.below(8);
        if let Some(byte) = self.place(input) {
            *byte ^= 1 << bit;
        }
    }

    fn set(&mut self, input: &mut [u8]) {
        let value = *self.random.pick(&BYTES);
        if let Some(byte) = self.place(input) {
            *byte = value;
        }
    }

    fn place<'a>(&mut self, input: &'a mut [u8]) -> Option<&'a mut u8> {
        let place = self.random.below(input.len());
        input.get_mut(place)
    }

    /// The bounds of a short piece.
    fn piece(&mut self, input: &[u8]) -> (usize, usize) {
        let from = self.random.below(input.len() + 1);
        let length = self.random.below(PIECE_BYTES_MAX);
        (from, (from + length).min(input.len()))
    }

    fn put(&mut self, input: &mut Vec<u8>, piece: &[u8]) {
        let at = self.random.below(input.len() + 1);
        input.splice(at..at, piece.iter().copied());
    }

    fn put_token(&mut self, input: &mut Vec<u8>) {
        if !self.tokens.is_empty() {
            let token = *self.random.pick(self.tokens);
            self.put(input, token.as_bytes());
        }
    }

    /// Replaces a number by another one.
    fn set_number(&mut self, input: &mut Vec<u8>) {
        let number = *self.random.pick(&NUMBERS);
        let start = self.random.below(input.len());
        let digits = input[start..].iter().position(u8::is_ascii_digit);
        let Some(from) = digits.map(|offset| start + offset) else {
            return;
        };
        let length = input[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let to = from + length.count();
        input.splice(from..to, number.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_input_and_none_grows_without_bound() {
        let inputs = [b"amount > 5".to_vec(), vec![0; INPUT_BYTES_MAX], Vec::new()];
        let made = |seed| {
            let mut mutator = Mutator::new(seed, &["and"]);
            let inputs: Vec<_> = (0..1_000).map(|_| mutator.mutate(&inputs)).collect();
            inputs
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        assert!(made(1).iter().all(|input| input.len() <= INPUT_BYTES_MAX));
    }

    #[test]
    fn tokens_and_numbers_are_put_in() {
        let inputs = [b"amount > 5".to_vec()];
        let mut mutator = Mutator::new(1, &["and"]);
        let made: Vec<_> = (0..1_000)
            .map(|_| String::from_utf8_lossy(&mutator.mutate(&inputs)).into_owned())
            .collect();
        for piece in ["and", "> 4294967296"] {
            assert!(made.iter().any(|input| input.contains(piece)), "{piece}");
        }
    }
}
