//! What does without a disk: applying commands over memory, encoding, the language of workflows.

mod apply;
mod encoding;
mod language;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    apply::bench(&mut criterion);
    encoding::bench(&mut criterion);
    language::bench(&mut criterion);
    criterion.final_summary();
}
