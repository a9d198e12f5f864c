//! Keys are registers with linearizable reads and writes (A40, design rule 14).
//!
//! The cluster gives every write a version from one sequence, so the order of the writes is known and only
//! real time must be compared: an operation that ended before another began comes first. A
//! compare-and-set write follows exactly the version that it names, and a read returns the newest write.

use crate::record::{Events, Operation, Outcome};
use flotilla_engine::{Body, Reply, SetCondition, SetKey, reply};
use std::collections::BTreeMap;

/// An acknowledged write.
struct Write<'a> {
    set: &'a SetKey,
    version: u64,
    invoked_ms: u64,
    returned_ms: u64,
}

pub(super) fn check(events: &Events) -> Vec<String> {
    let mut broken = Vec::new();
    let mut keys: BTreeMap<String, Vec<Write<'_>>> = BTreeMap::new();
    for write in events.operations.iter().filter_map(acknowledged) {
        keys.entry(write.set.key.to_string())
            .or_default()
            .push(write);
    }
    for (key, writes) in &mut keys {
        writes.sort_by_key(|write| write.version);
        broken.extend(check_writes(key, writes));
    }
    for read in &events.reads {
        let none = Vec::new();
        let writes = keys.get(&read.key).unwrap_or(&none);
        let version = read.found.as_ref().map_or(0, |(version, _)| *version);
        let before = writes
            .iter()
            .filter(|write| write.returned_ms < read.invoked_ms);
        let newest = before.map(|write| write.version).max().unwrap_or(0);
        let after = writes
            .iter()
            .filter(|write| write.invoked_ms > read.returned_ms);
        let oldest = after.map(|write| write.version).min().unwrap_or(u64::MAX);
        let value = read.found.as_ref().map(|(_, value)| value.as_slice());
        let written = writes.iter().find(|write| write.version == version);
        let differs = written.is_some_and(|write| Some(&write.set.value[..]) != value);
        if version < newest || version >= oldest || differs {
            broken.push(format!(
                "expected a read of a version from {newest} to below {oldest}, but it is {read:?}"
            ));
        }
    }
    broken.extend(reads_that_go_back(events));
    broken
}

fn acknowledged(operation: &Operation) -> Option<Write<'_>> {
    let Body::SetKey(set) = &operation.command.body else {
        return None;
    };
    match operation.outcome {
        Outcome::Acknowledged(Reply::KeySet(reply::KeySet { version })) => Some(Write {
            set,
            version,
            invoked_ms: operation.invoked_ms,
            returned_ms: operation.returned_ms?,
        }),
        _ => None,
    }
}

/// Writes in the order of their versions.
fn check_writes(key: &str, writes: &[Write<'_>]) -> Vec<String> {
    let mut broken = Vec::new();
    for (before, after) in writes.iter().zip(writes.iter().skip(1)) {
        let follows = match after.set.condition {
            SetCondition::Always => true,
            SetCondition::IfAbsent => false,
            SetCondition::IfVersion(expected) => expected >= before.version,
        };
        let is_twice = before.version == after.version;
        if !follows || is_twice || after.returned_ms < before.invoked_ms {
            broken.push(format!(
                "expected version {} of key {key} to follow {} by {:?}, but it cannot",
                after.version, before.version, after.set.condition
            ));
        }
    }
    broken
}

/// Reads in sequence of which a later one sees an older value: the newer value was not committed.
fn reads_that_go_back(events: &Events) -> Option<String> {
    for later in &events.reads {
        let version = |found: &Option<(u64, Vec<u8>)>| found.as_ref().map_or(0, |(v, _)| *v);
        let earlier = events.reads.iter().find(|earlier| {
            earlier.key == later.key
                && earlier.returned_ms < later.invoked_ms
                && version(&earlier.found) > version(&later.found)
        });
        if let Some(earlier) = earlier {
            return Some(format!("expected {later:?} to see what {earlier:?} saw"));
        }
    }
    None
}
