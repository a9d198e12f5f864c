//! Parses and validates workflows.

use criterion::{BenchmarkId, Criterion, Throughput};
use flotilla_benches::group;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;

/// The example that is measured separately: five steps, four custom terminals, a retry and a signal.
const ALONE: &str = "order-processing";

pub(crate) fn bench(criterion: &mut Criterion) {
    let examples = examples();
    let alone = examples.iter().find(|(name, _)| name == ALONE);
    let (name, text) = alone.expect("the example is there");
    parse(criterion, name, &[text]);
    let all: Vec<&String> = examples.iter().map(|(_, text)| text).collect();
    parse(criterion, "all examples", &all);
}

fn parse(criterion: &mut Criterion, name: &str, texts: &[&String]) {
    for text in texts {
        let parsed = flotilla_dsl::parse(text);
        assert!(!parsed.is_refused(), "{:?}", parsed.findings);
    }
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
    let mut group = group(criterion, "language");
    group.throughput(Throughput::Bytes(
        u64::try_from(bytes).expect("an example is small"),
    ));
    group.bench_function(BenchmarkId::new("parse", name), |bencher| {
        bencher.iter(|| {
            let parsed = texts
                .iter()
                .map(|text| flotilla_dsl::parse(black_box(text)));
            parsed.filter(|parsed| !parsed.is_refused()).count()
        });
    });
    group.finish();
}

/// The names and texts of the example workflows.
fn examples() -> Vec<(String, String)> {
    let folder = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder"),
    )
    .join("../../examples/workflows");
    let files = fs::read_dir(&folder).expect("the folder of examples can be read");
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.expect("the folder of examples can be read").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are examples");
    let example = |path: PathBuf| {
        let name = path.file_stem().expect("a file has a name");
        let text = fs::read_to_string(&path).expect("an example is a text");
        (name.to_string_lossy().into_owned(), text)
    };
    paths.into_iter().map(example).collect()
}
