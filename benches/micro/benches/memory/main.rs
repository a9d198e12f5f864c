//! Benchmarks without a disk: applying commands in memory, encoding, the workflow language.

mod apply;
mod encoding;
mod language;

use criterion::Criterion;
use tikv_jemallocator::Jemalloc;

/// As in `flo`: applying spends a good part of its time in the allocator (ADR 0021).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    apply::bench(&mut criterion);
    encoding::bench(&mut criterion);
    language::bench(&mut criterion);
    criterion.final_summary();
}
