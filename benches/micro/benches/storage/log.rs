//! The log device: appends with and without a sync, and reads. Beside it the lower bound for every log:
//! the same bytes appended to a file with `fdatasync`.

use crate::directory;
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput};
use flotilla_benches::{ENTRY_COMMANDS, Workload, group, is_measuring};
use flotilla_replica::{Durability, LogDevice, Operation, RocksStorage, Storage};
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Records per synced write, when commands arrive faster than the disk syncs.
const BATCH_RECORDS: u64 = 8;
/// After how many records the log is purged, as after a snapshot: it stays small.
const PURGE_RECORDS: u64 = 1_024;

/// A log that grows at its end.
struct Log {
    device: Arc<dyn LogDevice>,
    /// The index of the next record.
    next: u64,
    /// The index of the first existing record.
    first: u64,
    _directory: TempDir,
}

impl Log {
    fn new() -> Self {
        let directory = directory();
        let device = RocksStorage.open_log(directory.path());
        Self {
            device: device.expect("the directory is new"),
            next: 1,
            first: 1,
            _directory: directory,
        }
    }

    /// Appends a record `records` times, in one write; returns how long that took.
    fn append(&mut self, record: &Bytes, records: u64, durability: Durability) -> Duration {
        let puts = (self.next..self.next + records).map(|index| Operation::Put {
            index,
            record: record.clone(),
        });
        let puts: Vec<Operation> = puts.collect();
        let started = Instant::now();
        let written = self.device.write(&puts, durability);
        let time = started.elapsed();
        written.expect("a bench ends with its log");
        self.next += records;
        if self.next - self.first > PURGE_RECORDS {
            self.purge();
        }
        time
    }

    fn purge(&mut self) {
        let purge = Operation::Purge { to: self.next - 1 };
        let purged = self.device.write(&[purge], Durability::Deferred);
        purged.expect("a bench ends with its log");
        self.first = self.next;
    }

    /// Reads everything; returns the number of records equal to `record`, and of others.
    fn read(&self, record: &Bytes) -> (u64, u64) {
        let (mut equal, mut others) = (0, 0);
        let read = self.device.read(self.first, self.next, &mut |_, found| {
            if found == *record {
                equal += 1;
            } else {
                others += 1;
            }
            true
        });
        read.expect("a bench ends with its log");
        (equal, others)
    }
}

/// An entry of the log.
struct Entry {
    record: Bytes,
    commands: usize,
}

impl Entry {
    fn new(commands: usize) -> Self {
        let recording = Workload::Steps.record(commands, commands);
        Self {
            record: Bytes::from(recording.middle_entry().encode()),
            commands,
        }
    }

    fn id(&self, name: &str) -> BenchmarkId {
        BenchmarkId::new(name, self.commands)
    }

    /// The commands in this many entries.
    fn throughput(&self, entries: u64) -> Throughput {
        let commands = u64::try_from(self.commands).expect("an entry is small");
        Throughput::Elements(commands * entries)
    }
}

/// A kind of write to the log.
struct Append {
    name: &'static str,
    /// Records per write.
    records: u64,
    durability: Durability,
}

const APPENDS: [Append; 3] = [
    Append {
        name: "append",
        records: 1,
        durability: Durability::Synced,
    },
    Append {
        name: "append unsynced",
        records: 1,
        durability: Durability::Deferred,
    },
    Append {
        name: "append 8",
        records: BATCH_RECORDS,
        durability: Durability::Synced,
    },
];

pub(crate) fn bench(criterion: &mut Criterion) {
    for entry_commands in ENTRY_COMMANDS {
        let entry = Entry::new(entry_commands);
        floor(criterion, &entry);
        for append in &APPENDS {
            append.bench(criterion, &entry);
        }
        read(criterion, &entry);
    }
}

fn floor(criterion: &mut Criterion, entry: &Entry) {
    let directory = directory();
    let path = directory.path().join("floor");
    let mut group = group(criterion, "log");
    group.throughput(entry.throughput(1));
    group.bench_function(entry.id("floor"), |bencher| {
        bencher.iter_custom(|rounds| {
            let mut time = Duration::ZERO;
            let mut file = File::create(&path).expect("the directory is new");
            for round in 1..=rounds {
                let started = Instant::now();
                file.write_all(&entry.record).expect("there is room");
                file.sync_data().expect("there is room");
                time += started.elapsed();
                if round % PURGE_RECORDS == 0 {
                    file = File::create(&path).expect("the directory is new");
                }
            }
            time
        });
    });
    group.finish();
}

impl Append {
    fn bench(&self, criterion: &mut Criterion, entry: &Entry) {
        let Self {
            name,
            records,
            durability,
        } = *self;
        let mut log = Log::new();
        log.append(&entry.record, records, durability);
        let found = log.read(&entry.record);
        assert_eq!(found, (records, 0), "what was written is there");
        let mut group = group(criterion, "log");
        group.throughput(entry.throughput(records));
        group.bench_function(entry.id(name), |bencher| {
            bencher.iter_custom(|rounds| {
                let append = |_| log.append(&entry.record, records, durability);
                (0..rounds).map(append).sum()
            });
        });
        group.finish();
    }
}

/// Reads like a restarting replica: all records, starting with the first.
fn read(criterion: &mut Criterion, entry: &Entry) {
    let record = &entry.record;
    let records = if is_measuring() { PURGE_RECORDS } else { 16 };
    let mut log = Log::new();
    for _ in 0..records {
        log.append(record, 1, Durability::Deferred);
    }
    assert_eq!(log.read(record), (records, 0), "what was written is there");
    let mut group = group(criterion, "log");
    group.throughput(entry.throughput(records));
    group.bench_function(entry.id("read"), |bencher| {
        bencher.iter(|| log.read(record))
    });
    group.finish();
}
