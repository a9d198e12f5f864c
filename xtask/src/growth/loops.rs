//! Loops over more and more items.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::report::Report;
use super::section::Section;
use super::show::{fine, of_nodes, whole};
use crate::table::Table;

/// How many items a run has.
const ITEMS: [u16; 3] = [100, 1_000, 10_000];

/// How many iterations of a run are executed at the same time.
const CONCURRENCY: u16 = 100;

/// Measures whole runs that loop over more and more items, one after the other.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut reports = Vec::new();
    for items in ITEMS {
        let load = Load::foreach()
            .with("--items", items)
            .with("--concurrency", CONCURRENCY)
            .with("--clients", 1)
            .labeled("items", items);
        reports.push(bench.measure_alone(&load)?);
    }
    let title = ["--x", "items", "--title", "By the items of a loop"];
    let drawn = bench.plot("loops", &title, &reports)?;
    let measured: Vec<(u16, Report)> = ITEMS.into_iter().zip(reports).collect();
    let section = Section::default()
        .paragraph(
            "`flo bench foreach`: whole runs whose `forEach` executes an action for each item, at most 100 at the same \
             time, and adds to the state. One client starts a run when the one before has ended. An item costs the same \
             however many items its run has if the time per item, and what it writes, do not grow with their number.",
        )
        .table(&table(&measured));
    Ok(section.figure("Throughput and latency by the items of a loop", drawn))
}

fn table(measured: &[(u16, Report)]) -> Table {
    let mut table = Table::new(&[
        "items",
        "runs",
        "p50 of a run, ms",
        "p50 per item, µs",
        "written/item of each node, leader first",
        "errors",
    ]);
    for (items, report) in measured {
        let per_item = |bytes: f64| whole(bytes / f64::from(*items));
        table.add([
            items.to_string(),
            report.completed.to_string(),
            fine(report.latency.p50_ms),
            whole(report.latency.p50_ms * 1_000.0 / f64::from(*items)),
            of_nodes(report, |node| node.written_bytes_per_run, per_item),
            report.errors.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn each_number_of_items_is_a_row_with_the_costs_of_an_item() {
        let measured = ITEMS.map(|items| (items, report("foreach", 1_000.0, 50.0)));
        expect![[r#"
            | items | runs | p50 of a run, ms | p50 per item, µs | written/item of each node, leader first | errors |
            |------:|-----:|-----------------:|-----------------:|----------------------------------------:|-------:|
            |   100 | 4000 |            50.00 |              500 |                                 33 / 33 |      0 |
            |  1000 | 4000 |            50.00 |               50 |                                   3 / 3 |      0 |
            | 10000 | 4000 |            50.00 |                5 |                                   0 / 0 |      0 |"#]].assert_eq(&table(&measured).markdown().join("\n"));
    }
}
