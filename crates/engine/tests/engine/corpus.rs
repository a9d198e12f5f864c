//! Old logs must still produce the same state (design rule 12).
//!
//! `testdata/corpus/N.log` holds logs written by the release with engine version N, and `N.txt` their results: one line
//! per log, with its entries and a digest of all writes, chained as replicas chain theirs. An existing file is never
//! written again. A release that raises the engine version adds its own files, made from the scripts: `RECORD_CORPUS=1
//! cargo test -p flotilla-engine --test engine corpus`. Until the first release there are no such files, because
//! formats may still change.
#![expect(
    clippy::disallowed_methods,
    reason = "the engine does no I/O, its tests read what they expect from files"
)]

use crate::{script, testdata};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{ENGINE_VERSION, Engine, Entry};
use std::fmt::Write as _;
use xxhash_rust::xxh3::Xxh3;

/// Scripts about bounds write megabytes, which would tell no more than the others do.
const LOG_BYTES_MAX: usize = 100_000;

/// A log by the name of the script that made it.
struct Log {
    name: String,
    /// From index 1.
    entries: Vec<Vec<u8>>,
}

/// How many engine versions have been released.
const RELEASED: usize = 0;

#[test]
fn logs_of_every_release_lead_to_the_state_that_they_led_to() {
    record_if_requested();
    for version in (1..).take(RELEASED) {
        let path = testdata::file(&format!("corpus/{version}.log"));
        let bytes =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let logs = decode(&bytes);
        assert!(logs.len() > 50, "{} logs of version {version}", logs.len());
        let expected = testdata::read(&testdata::file(&format!("corpus/{version}.txt")));
        for (line, log) in expected.lines().zip(&logs) {
            assert_eq!(line, outcome(log, version), "of engine version {version}");
        }
        assert_eq!(expected.lines().count(), logs.len());
    }
}

#[test]
fn a_recorded_log_is_read_as_it_was_written() {
    let logs: Vec<Log> = testdata::files("")
        .into_iter()
        .take(3)
        .map(|path| of_script(&path))
        .collect();
    let read = decode(&encode(&logs));
    let outcomes = |logs: &[Log]| -> Vec<String> {
        logs.iter()
            .map(|log| outcome(log, ENGINE_VERSION))
            .collect()
    };
    assert_eq!(outcomes(&read), outcomes(&logs));
}

#[test]
fn a_log_with_another_entry_leads_elsewhere() {
    let path = testdata::files("").swap_remove(0);
    let mut log = of_script(&path);
    let whole = outcome(&log, ENGINE_VERSION);
    log.entries.pop();
    assert_ne!(outcome(&log, ENGINE_VERSION), whole);
}

/// The log's name, entries and what they lead to where this engine version is agreed on.
fn outcome(log: &Log, version: u32) -> String {
    let mut store = MemoryStore::default();
    let mut engine = Engine::open(&store, version).expect("memory does not fail");
    let mut digest = 0;
    for (index, bytes) in (1..).zip(&log.entries) {
        let entry = Entry::decode(bytes).expect("every release reads what an older one wrote");
        let applied = engine.apply(&store, index, &entry);
        let writes = applied.expect("memory does not fail").writes;
        digest = chain(digest, index, &writes);
        store.write(&writes);
    }
    format!("{} {} {digest:032x}", log.name, log.entries.len())
}

/// As replicas chain the digests that they compare.
fn chain(previous: u128, index: u64, writes: &flotilla_engine::store::Writes) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&previous.to_be_bytes());
    hasher.update(&index.to_be_bytes());
    for (key, value) in writes {
        for field in [Some(key), value] {
            let length = field.map_or(u64::MAX, |field| field.len() as u64);
            hasher.update(&length.to_be_bytes());
            hasher.update(field.unwrap_or_default());
        }
    }
    hasher.digest128()
}

fn of_script(path: &std::path::Path) -> Log {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    Log {
        name: stem.expect("scripts have plain names").to_owned(),
        entries: script::log(&testdata::read(path)),
    }
}

fn record_if_requested() {
    if std::env::var_os("RECORD_CORPUS").is_none() {
        return;
    }
    let path = testdata::file(&format!("corpus/{ENGINE_VERSION}.log"));
    assert!(
        !path.exists(),
        "{} is there: raise ENGINE_VERSION first",
        path.display()
    );
    let logs = testdata::files("").into_iter().map(|path| of_script(&path));
    let is_short = |log: &Log| log.entries.iter().map(Vec::len).sum::<usize>() <= LOG_BYTES_MAX;
    let logs: Vec<Log> = logs.filter(is_short).collect();
    let mut outcomes = String::new();
    for log in &logs {
        writeln!(outcomes, "{}", outcome(log, ENGINE_VERSION)).expect("a String");
    }
    std::fs::write(&path, encode(&logs)).expect("the file is writable");
    std::fs::write(path.with_extension("txt"), outcomes).expect("the file is writable");
}

/// Each log is its name and its entries behind their number; texts and entries stand behind their length. All
/// numbers have four bytes, the highest first.
fn encode(logs: &[Log]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |field: &[u8]| {
        let length = u32::try_from(field.len()).expect("a log is small");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(field);
    };
    for log in logs {
        put(log.name.as_bytes());
        let count = u32::try_from(log.entries.len()).expect("a log is short");
        put(&count.to_be_bytes());
        log.entries.iter().for_each(|entry| put(entry));
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Vec<Log> {
    let mut logs = Vec::new();
    while !bytes.is_empty() {
        let name = String::from_utf8(take(&mut bytes)).expect("a name is text");
        let count = take(&mut bytes)
            .try_into()
            .expect("a number has four bytes");
        let entries = (0..u32::from_be_bytes(count))
            .map(|_| take(&mut bytes))
            .collect();
        logs.push(Log { name, entries });
    }
    logs
}

fn take(bytes: &mut &[u8]) -> Vec<u8> {
    let (length, rest) = bytes
        .split_first_chunk::<4>()
        .expect("a field has a length");
    let length = usize::try_from(u32::from_be_bytes(*length)).expect("a field fits into memory");
    let (field, rest) = rest.split_at(length);
    *bytes = rest;
    field.to_vec()
}
