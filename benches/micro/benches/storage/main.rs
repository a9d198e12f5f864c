//! Benchmarks with a disk: the state store and the log device of a real node, both on RocksDB.
//!
//! Their directories are below the target folder, so the disk of that folder is measured.

mod log;
mod state;

use criterion::Criterion;
use tikv_jemallocator::Jemalloc;

/// As in `flo`: applying spends a good part of its time in the allocator (ADR 0021).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    state::bench(&mut criterion);
    log::bench(&mut criterion);
    criterion.final_summary();
}

/// A directory that is removed when it is dropped.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("cargo has made the folder")
}
