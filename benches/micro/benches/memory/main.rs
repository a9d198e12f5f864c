//! What does without a disk: applying commands over memory, encoding, the language of workflows.

mod apply;
mod encoding;
mod language;

use criterion::Criterion;
use tikv_jemallocator::Jemalloc;

/// As in `flo`: a good part of applying is spent in the allocator (ADR 0021).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    apply::bench(&mut criterion);
    encoding::bench(&mut criterion);
    language::bench(&mut criterion);
    criterion.final_summary();
}
