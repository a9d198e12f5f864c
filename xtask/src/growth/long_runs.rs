//! Longer and longer runs.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::report::Report;
use super::section::Section;
use super::show::{fine, latencies, of_nodes, whole};
use crate::table::Table;

/// How many steps a run has.
const STEPS: [u16; 4] = [3, 10, 100, 1_000];

/// How many runs are open at a time: few, so that a run of a thousand steps takes seconds.
const CLIENTS: u16 = 16;

/// Measures whole runs with more and more steps.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut reports = Vec::new();
    for steps in STEPS {
        let load = Load::steps()
            .with("--steps", steps)
            .with("--clients", CLIENTS);
        reports.push(bench.measure_alone(&load)?);
    }
    let title = ["--x", "steps_per_run", "--title", "By the steps of a run"];
    let drawn = bench.plot("long-runs", &title, &reports)?;
    let measured: Vec<(u16, Report)> = STEPS.into_iter().zip(reports).collect();
    let section = Section::default()
        .paragraph(
            "`flo bench steps`: whole runs of the given number of steps, by 16 clients. A step costs the same however \
             many steps of its run came before if the time from one step to the next, and what a step writes, do not \
             grow with the number of steps.",
        )
        .table(&table(&measured));
    Ok(section.figure("Throughput and latency by the steps of a run", drawn))
}

fn table(measured: &[(u16, Report)]) -> Table {
    let mut table = Table::new(&[
        "steps",
        "runs/s",
        "steps/s",
        "transition p50",
        "transition p99",
        "written/step of each node, leader first",
        "errors",
    ]);
    for (steps, report) in measured {
        let [.., transition_p50, transition_p99] = latencies(report);
        let per_step = |bytes: f64| whole(bytes / f64::from(*steps));
        table.add([
            steps.to_string(),
            fine(report.rate),
            whole(report.rate * f64::from(*steps)),
            transition_p50,
            transition_p99,
            of_nodes(report, |node| node.written_bytes_per_run, per_step),
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
    fn each_length_is_a_row_with_the_costs_of_a_step() {
        let measured = STEPS.map(|steps| (steps, report("steps", 1_000.0, 50.0)));
        expect![[r#"
            | steps |  runs/s | steps/s | transition p50 | transition p99 | written/step of each node, leader first | errors |
            |------:|--------:|--------:|---------------:|---------------:|----------------------------------------:|-------:|
            |     3 | 1000.00 |    3000 |          12.50 |          25.00 |                             1104 / 1104 |      0 |
            |    10 | 1000.00 |   10000 |          12.50 |          25.00 |                               331 / 331 |      0 |
            |   100 | 1000.00 |  100000 |          12.50 |          25.00 |                                 33 / 33 |      0 |
            |  1000 | 1000.00 | 1000000 |          12.50 |          25.00 |                                   3 / 3 |      0 |"#]].assert_eq(&table(&measured).markdown().join("\n"));
    }
}
