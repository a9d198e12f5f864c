//! Commands per second that the engine applies over the state store. Each entry is written in one batch without sync,
//! as the replica does (design rule 5), but without the replica's digests and its few own rows.

use crate::directory;
use criterion::{BenchmarkId, Criterion, Throughput};
use flotilla_benches::{ENTRY_COMMANDS, Recording, Rows, Timed, Workload, group};
use flotilla_engine::store::{Reader, Writes};
use flotilla_replica::{RocksStorage, SharedReader, StateStore, Storage};
use std::cell::LazyCell;
use std::sync::Arc;
use tempfile::TempDir;

/// A state store with the initial rows of a recording.
struct State {
    store: Arc<dyn StateStore>,
    reader: Arc<dyn SharedReader>,
    /// Dropped last.
    _directory: TempDir,
}

impl State {
    fn of(recording: &Recording) -> Self {
        let directory = directory();
        let store = RocksStorage.open_state(directory.path());
        let store = store.expect("the directory is new");
        let written = store.write(&recording.base_writes());
        written.expect("a bench ends with its store");
        Self {
            reader: store.reader(),
            store,
            _directory: directory,
        }
    }
}

impl Rows for State {
    fn reader(&self) -> &dyn Reader {
        self.reader.as_ref()
    }

    fn write(&mut self, writes: &Writes) {
        let written = self.store.write(writes);
        written.expect("a bench ends with its store");
    }
}

pub(crate) fn bench(criterion: &mut Criterion) {
    for is_write_included in [false, true] {
        for entry_commands in ENTRY_COMMANDS {
            measure(criterion, entry_commands, is_write_included);
        }
    }
}

fn measure(criterion: &mut Criterion, entry_commands: usize, is_write_included: bool) {
    let runs = Workload::Steps.runs(entry_commands);
    let recording = LazyCell::new(|| {
        let recording = Workload::Steps.record(runs, entry_commands);
        recording.check_replay(&mut State::of(&recording));
        recording
    });
    let timed = Timed {
        stage: None,
        is_write_included,
    };
    let what = if is_write_included {
        "apply and write"
    } else {
        "apply"
    };
    let mut group = group(criterion, "state");
    let commands = u64::try_from(runs * 4).expect("a recording is small");
    group.throughput(Throughput::Elements(commands));
    group.bench_function(BenchmarkId::new(what, entry_commands), |bencher| {
        bencher.iter_custom(|rounds| {
            let replay = |_| recording.replay(&mut State::of(&recording), timed);
            (0..rounds).map(replay).sum()
        });
    });
    group.finish();
}
