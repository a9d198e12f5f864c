//! Label sets as key parts (A3).

use super::Key;
use std::collections::BTreeMap;

/// The labels that a task requires or that a worker has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelSet(pub BTreeMap<String, String>);

/// Terminates a text: sorts above the end of the set and below every escaped zero byte.
const TEXT_END: [u8; 2] = [0, 1];
/// Ends the set.
const SET_END: [u8; 2] = [0, 0];
/// Stands for a zero byte within a text.
const ZERO: [u8; 2] = [0, 0xff];

impl LabelSet {
    /// Whether a worker with `labels` has all of these.
    #[must_use]
    pub fn is_subset_of(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0
            .iter()
            .all(|(name, value)| labels.get(name) == Some(value))
    }
}

impl Key for LabelSet {
    fn encode(&self, out: &mut Vec<u8>) {
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            encode_text(text, out);
        }
        out.extend(SET_END);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut labels = BTreeMap::new();
        loop {
            if let Some(rest) = bytes.strip_prefix(&SET_END) {
                *bytes = rest;
                return Some(Self(labels));
            }
            let name = decode_text(bytes)?;
            // A label set has a single encoding: its names in order, each once.
            if labels
                .last_key_value()
                .is_some_and(|(last, _)| *last >= name)
            {
                return None;
            }
            labels.insert(name, decode_text(bytes)?);
        }
    }
}

/// Appends a text that may contain any character.
pub(super) fn encode_text(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            0 => out.extend(ZERO),
            other => out.push(other),
        }
    }
    out.extend(TEXT_END);
}

/// Decodes a text from the front of `bytes`.
pub(super) fn decode_text(bytes: &mut &[u8]) -> Option<String> {
    let mut text = Vec::new();
    loop {
        if let Some(rest) = bytes.strip_prefix(&TEXT_END) {
            *bytes = rest;
            return String::from_utf8(text).ok();
        }
        let (byte, rest) = bytes.split_first()?;
        *bytes = match bytes.strip_prefix(&ZERO) {
            Some(rest) => rest,
            None if *byte == 0 => return None,
            None => rest,
        };
        text.push(*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(labels: &[(&str, &str)]) -> LabelSet {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        LabelSet(labels.iter().map(owned).collect())
    }

    #[test]
    fn bytes_sort_as_the_sets_do_and_come_back() {
        let sets = [
            set(&[]),
            set(&[("", "")]),
            set(&[("a", "")]),
            set(&[("a", "\0")]),
            set(&[("a", "b")]),
            set(&[("a", "b"), ("\u{1}", "")]),
            set(&[("a", "b"), ("c", "d")]),
            set(&[("a", "b\0c")]),
            set(&[("a", "bc")]),
            set(&[("a\0", "b")]),
            set(&[("ab", "日本")]),
        ];
        let mut sorted = sets.to_vec();
        sorted.sort();
        let mut encoded: Vec<Vec<u8>> = Vec::new();
        for set in &sorted {
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            let longer = [bytes.as_slice(), &[0, 0]].concat();
            let mut rest = longer.as_slice();
            assert_eq!(LabelSet::decode(&mut rest).as_ref(), Some(set));
            assert_eq!(rest, [0, 0]);
            encoded.push(bytes);
        }
        assert!(encoded.is_sorted());
    }

    #[test]
    fn other_bytes_are_not_decoded_as_a_set() {
        for bytes in [
            &b""[..],
            b"a",
            b"a\0",
            b"a\0\x01",
            b"a\0\x01b\0\x01",
            b"a\0\x02b\0\x01\0\0",
            b"\xff\0\x01b\0\x01\0\0",
            b"b\0\x01\0\x01a\0\x01\0\x01\0\0",
            b"a\0\x01\0\x01a\0\x01\0\x01\0\0",
        ] {
            let mut rest = bytes;
            assert_eq!(LabelSet::decode(&mut rest), None, "{bytes:02x?}");
        }
    }

    #[test]
    fn a_worker_has_a_set_when_it_has_every_label_of_it() {
        let worker = set(&[("gpu", "yes"), ("zone", "eu")]).0;
        assert!(set(&[]).is_subset_of(&worker));
        assert!(set(&[("zone", "eu")]).is_subset_of(&worker));
        assert!(!set(&[("zone", "us")]).is_subset_of(&worker));
        assert!(!set(&[("gpu", "yes"), ("ssd", "")]).is_subset_of(&worker));
    }
}
