//! Encodes and decodes entries and records (design rule 12).

use criterion::{BenchmarkId, Criterion, Throughput};
use flotilla_benches::{ENTRY_COMMANDS, Recording, Workload, group};
use flotilla_engine::Entry;
use flotilla_engine::rows::{
    ActionRuns, History, Runs, Table, decode_record, encode_prefix, encode_record,
};
use flotilla_engine::store::{KeyRange, Order, Reader};
use std::hint::black_box;
use std::ops::ControlFlow;

pub(crate) fn bench(criterion: &mut Criterion) {
    for entry_commands in ENTRY_COMMANDS {
        let recording = Workload::Steps.record(entry_commands, entry_commands);
        entry(criterion, recording.middle_entry());
    }
    let recording = Workload::Steps.record(4, 4);
    record::<Runs>(criterion, "run", &recording);
    record::<ActionRuns>(criterion, "action run", &recording);
    record::<History>(criterion, "history", &recording);
}

/// An entry of the workload of three steps.
fn entry(criterion: &mut Criterion, entry: &Entry) {
    let bytes = entry.encode();
    let decoded = Entry::decode(&bytes).expect("just encoded");
    assert_eq!(decoded, *entry, "an entry survives the way there and back");
    let commands = entry.commands.len();
    let mut group = group(criterion, "entry");
    group.throughput(Throughput::Elements(
        u64::try_from(commands).expect("an entry is small"),
    ));
    group.bench_function(BenchmarkId::new("encode", commands), |bencher| {
        bencher.iter(|| black_box(entry).encode());
    });
    group.bench_function(BenchmarkId::new("decode", commands), |bencher| {
        bencher.iter(|| Entry::decode(black_box(&bytes)));
    });
    group.finish();
}

/// The last record of a table: of an ended run and its parts.
fn record<T: Table>(criterion: &mut Criterion, name: &str, recording: &Recording) {
    let bytes = last_record::<T>(recording);
    let record = decode_record::<T>(&bytes).expect("the engine wrote it");
    assert_eq!(encode_record::<T>(&record), bytes, "a record has one form");
    let mut group = group(criterion, "record");
    group.throughput(Throughput::Bytes(
        u64::try_from(bytes.len()).expect("a record is small"),
    ));
    group.bench_function(BenchmarkId::new("encode", name), |bencher| {
        bencher.iter(|| encode_record::<T>(black_box(&record)));
    });
    group.bench_function(BenchmarkId::new("decode", name), |bencher| {
        bencher.iter(|| decode_record::<T>(black_box(&bytes)));
    });
    group.finish();
}

fn last_record<T: Table>(recording: &Recording) -> Vec<u8> {
    let all = KeyRange::prefix(&encode_prefix::<T>(&()));
    let mut last = None;
    let scanned = recording
        .rows()
        .scan(&all, Order::Descending, &mut |_, value| {
            last = Some(value.to_vec());
            ControlFlow::Break(())
        });
    scanned.expect("memory does not fail");
    last.expect("runs leave rows of each of these tables")
}
