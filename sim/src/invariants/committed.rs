//! What one node has applied is never lost: at the end every node has it.

use super::Evidence;
use crate::record::Events;
use std::collections::BTreeMap;

pub(super) fn check(events: &Events, evidence: &Evidence) -> Vec<String> {
    let furthest = events.progress.iter().map(|seen| seen.index).max();
    let furthest = furthest.unwrap_or(0);
    let ends = evidence.nodes.iter();
    let short = ends.filter(|(_, ((applied, _), _))| *applied < furthest);
    let short: BTreeMap<_, _> = short
        .map(|(host, (progress, _))| (host, progress.0))
        .collect();
    if short.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "expected every node to apply entry {furthest} again, since one had applied it, but in the end \
         they stand at {short:?}"
    )]
}
