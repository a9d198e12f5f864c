//! More and more clients, each of which begins the next piece of work when the one before is done.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::report::Report;
use super::section::Section;
use super::show::{latencies, of_nodes, whole};
use crate::table::Table;

/// How many there are.
const CLIENTS: [u16; 4] = [1, 8, 64, 512];

/// Measures whole runs and starts, by more and more clients.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut reports = Vec::new();
    for workload in [Load::steps(), Load::start()] {
        for clients in CLIENTS {
            let load = workload.clone().with("--clients", clients);
            reports.push(bench.measure_alone(&load)?);
        }
    }
    let title = ["--x", "clients", "--title", "By the number of clients"];
    let drawn = bench.plot("clients", &title, &reports)?;
    let section = Section::default()
        .paragraph(
            "`flo bench steps` runs three steps each; `flo bench start` starts runs that end immediately. A client \
             begins the next run when the previous one is done.",
        )
        .table(&table(&reports));
    Ok(section.figure("Throughput and latency by the number of clients", drawn))
}

fn table(reports: &[Report]) -> Table {
    let mut table = Table::new(&[
        "workload",
        "clients",
        "per second",
        "p50",
        "p99",
        "transition p50",
        "transition p99",
        "CPU, leader first",
        "errors",
    ]);
    for report in reports {
        let [p50, p99, transition_p50, transition_p99] = latencies(report);
        let processors = of_nodes(report, |node| node.processor_percent, whole);
        table.add([
            report.workload.clone(),
            report.clients.to_string(),
            whole(report.rate),
            p50,
            p99,
            transition_p50,
            transition_p99,
            processors,
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
    fn each_report_is_a_row() {
        let reports = [
            report("steps", 1_210.0, 50.0),
            report("start", 9_000.4, 6.0),
        ];
        expect![[r#"
            | workload | clients | per second |   p50 |    p99 | transition p50 | transition p99 | CPU, leader first | errors |
            |----------|--------:|-----------:|------:|-------:|---------------:|---------------:|------------------:|-------:|
            | steps    |      64 |       1210 | 50.00 | 100.00 |          12.50 |          25.00 |           44 / 44 |      0 |
            | start    |      64 |       9000 |  6.00 |  12.00 |              - |              - |           44 / 44 |      0 |"#]].assert_eq(&table(&reports).markdown().join("\n"));
    }
}
