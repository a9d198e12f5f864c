//! Inputs of a given size.

use bytes::Bytes;
use rand::RngExt;

/// The number of offsets at which a payload may begin in the filler: no two in a block of a file
/// are then alike.
const OFFSETS: usize = 1 << 20;
/// Characters that JSON does not escape.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Makes inputs that cannot be compressed below six bits per character.
#[derive(Debug)]
pub(super) struct Payloads {
    length: usize,
    filling: Vec<u8>,
}

impl Payloads {
    /// Inputs with this many bytes in addition to the common fields.
    pub(super) fn new(length: u32) -> Self {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let size = if length == 0 { 0 } else { length + OFFSETS };
        let mut filling = vec![0; size];
        rand::rng().fill(&mut filling[..]);
        for character in &mut filling {
            *character = LETTERS[usize::from(*character) % LETTERS.len()];
        }
        Self { length, filling }
    }

    /// The input with this number: `{"n": …}`, with the filler as `data`.
    pub(super) fn input(&self, number: u64) -> Bytes {
        let mut input = format!("{{\"n\":{number}").into_bytes();
        if self.length > 0 {
            let begin = rand::rng().random_range(0..OFFSETS);
            input.reserve(self.length + 12);
            input.extend_from_slice(b",\"data\":\"");
            input.extend_from_slice(&self.filling[begin..begin + self.length]);
            input.push(b'"');
        }
        input.push(b'}');
        input.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn an_input_is_json_of_the_size_that_was_asked_for() {
        let input = Payloads::new(1_000).input(7);
        let value: Value = serde_json::from_slice(&input).expect("JSON");
        assert_eq!(value["n"], 7);
        assert_eq!(value["data"].as_str().map(str::len), Some(1_000));
        assert_eq!(Payloads::new(0).input(7), r#"{"n":7}"#);
    }
}
