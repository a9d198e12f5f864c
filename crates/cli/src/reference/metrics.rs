//! The page of metrics, from the server's catalogue.

use expect_test::expect_file;
use flotilla_server::METRICS;
use std::fmt::Write;

const HEAD: &str = "\
# Metrics

The metrics that a node exposes at `/metrics` on its HTTP port; [Watching a cluster](../watching.md) says how to scrape
them. Counters restart from zero with the node, unless stated otherwise. This page is generated from the code, so it
lists every metric.

| metric | type | labels | unit | what |
|---|---|---|---|---|
";

#[test]
fn the_page_of_metrics_lists_the_catalogue() {
    let mut page = String::from(HEAD);
    for metric in METRICS {
        let labels = metric.labels.iter();
        let labels: Vec<String> = labels.map(|label| format!("`{label}`")).collect();
        let (kind, labels) = (metric.kind.as_str(), labels.join(", "));
        let (name, unit, help) = (metric.name, metric.unit, metric.help);
        writeln!(page, "| `{name}` | {kind} | {labels} | {unit} | {help} |")
            .expect("a string takes any text");
    }
    expect_file!["../../../../docs/manual/reference/metrics.md"].assert_eq(&page);
}
