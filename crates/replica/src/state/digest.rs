//! The digest that replicas compare (design rule 11).

use flotilla_engine::store::Writes;
use xxhash_rust::xxh3::Xxh3;

/// The digest after an entry, from the previous digest and what the entry wrote.
///
/// Lengths are part of what is hashed, so no two sets of writes hash the same bytes.
pub(crate) fn chain(previous: u128, index: u64, writes: &Writes) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&previous.to_be_bytes());
    hasher.update(&index.to_be_bytes());
    for (key, value) in writes {
        update(&mut hasher, key);
        match value {
            Some(value) => update(&mut hasher, value),
            None => hasher.update(&u64::MAX.to_be_bytes()),
        }
    }
    hasher.digest128()
}

fn update(hasher: &mut Xxh3, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(rows: &[(&str, Option<&str>)]) -> Writes {
        rows.iter()
            .map(|(key, value)| {
                (
                    key.as_bytes().to_vec(),
                    value.map(|v| v.as_bytes().to_vec()),
                )
            })
            .collect()
    }

    #[test]
    fn the_digest_distinguishes_what_concatenation_would_not() {
        let digest = |rows: &[_]| chain(0, 1, &writes(rows));
        let all = [
            digest(&[]),
            digest(&[("a", None)]),
            digest(&[("a", Some(""))]),
            digest(&[("ab", Some("c"))]),
            digest(&[("a", Some("bc"))]),
            digest(&[("a", Some("b")), ("c", Some(""))]),
            chain(0, 2, &writes(&[])),
            chain(1, 1, &writes(&[])),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    /// Replicas of different versions compare digests: the function never changes.
    #[test]
    fn the_digest_of_known_writes_does_not_change() {
        let digest = chain(7, 42, &writes(&[("key", Some("value")), ("gone", None)]));
        assert_eq!(format!("{digest:032x}"), "c3f9fc689b34b82213a1fb60ecfa052e");
    }
}
