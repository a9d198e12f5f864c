//! Nodes that have applied the same entries have the same state at all times.
//!
//! The digest is chained over all writes of all entries, so two nodes that differ once stay different.

use super::Evidence;
use crate::record::Events;
use std::collections::BTreeMap;

pub(super) fn check(events: &Events, evidence: &Evidence) -> Vec<String> {
    let mut broken = Vec::new();
    let mut digests = BTreeMap::new();
    // A node that has applied nothing also reports 0.
    for seen in events.progress.iter().filter(|seen| seen.index > 0) {
        let (host, digest) = *digests
            .entry(seen.index)
            .or_insert((seen.host, seen.digest));
        if digest != seen.digest {
            broken.push(format!(
                "expected nodes {host} and {} to agree after entry {}, but they do not",
                seen.host, seen.index
            ));
        }
    }
    let mut nodes = evidence.nodes.iter();
    if let Some((first, (progress, rows))) = nodes.next() {
        for (host, (other_progress, other_rows)) in nodes {
            if progress != other_progress || rows != other_rows {
                broken.push(format!(
                    "expected nodes {first} and {host} to have the same rows in the end, but they do not"
                ));
            }
        }
    }
    broken.truncate(3);
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Progress;

    #[test]
    fn two_digests_of_one_entry_are_found_whenever_they_were_seen() {
        let seen = |host, index, digest| Progress {
            host,
            index,
            digest,
            log_ms: None,
        };
        let mut events = Events::default();
        events.progress = vec![seen(1, 7, 70), seen(1, 8, 80), seen(2, 7, 70)];
        let evidence = Evidence {
            nodes: BTreeMap::new(),
        };
        assert!(check(&events, &evidence).is_empty());
        events.progress.push(seen(3, 8, 81));
        assert_eq!(check(&events, &evidence).len(), 1);
    }
}
