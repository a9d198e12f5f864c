//! The invariants, one file each.
//!
//! Most are checked at the end, from the record and from the final state of every node: a violation on
//! the way is still visible there, since nothing that is acknowledged is ever forgotten.

mod acknowledged;
mod agreement;
mod clock;
pub(crate) mod clusters;
mod committed;
mod compensations;
mod completions;
mod concurrency;
mod credentials;
mod deliveries;
mod histories;
mod keys;
mod leases;
mod loops;
pub(crate) mod progress;
mod quotas;
mod records;
mod resumes;
mod rows;
mod schedules;
mod scopes;
mod states;
mod step_handlers;
mod survival;
mod targets;
mod usages;

use crate::network::Host;
use crate::record::Events;
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

/// The final state of each node: the applied index with the digest, and its rows.
pub(crate) struct Evidence {
    pub(crate) nodes: BTreeMap<Host, ((u64, u128), MemoryStore)>,
}

/// The violations.
pub(crate) fn check(events: &Events, evidence: &Evidence) -> Vec<String> {
    let mut broken = survival::check(events);
    broken.extend(agreement::check(events, evidence));
    broken.extend(committed::check(events, evidence));
    broken.extend(clock::check(events));
    broken.extend(leases::check(events));
    broken.extend(deliveries::check(events));
    broken.extend(keys::check(events));
    // All nodes have the same rows, or the agreement is broken already.
    if let Some((_, rows)) = evidence.nodes.values().next() {
        broken.extend(acknowledged::check(events, rows));
        broken.extend(completions::check(events, rows));
        broken.extend(histories::check(rows));
        broken.extend(schedules::check(rows));
        broken.extend(records::check(events, rows));
        broken.extend(scopes::check(rows));
        broken.extend(loops::check(rows));
        broken.extend(compensations::check(rows));
        broken.extend(step_handlers::check(rows));
        broken.extend(states::check(rows));
        broken.extend(usages::check(rows));
        broken.extend(quotas::check(rows));
        broken.extend(concurrency::check(rows));
        broken.extend(resumes::check(rows));
        broken.extend(targets::check(rows));
        broken.extend(credentials::check(events, rows));
    }
    broken
}
