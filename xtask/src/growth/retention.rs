//! Runs that are forgotten while others begin.

use anyhow::{Result, bail};

use super::bench::Bench;
use super::load::Load;
use super::peak;
use super::report::Report;
use super::section::Section;
use super::show::{latencies, mib, of_nodes, rate_wanted, whole};
use super::spread::{self, SHARE_JUDGED};
use crate::table::Table;

/// How long a run is kept once it has ended: through the whole load, and for a part of it only.
const RETENTIONS: [&str; 2] = ["1d", "5s"];

/// How long a load runs before it is measured, in seconds: then runs expire as fast as they end.
const WARM_UP_MIN: u32 = 8;

/// The option of `flo bench` that says how long runs are kept.
const OPTION: &str = "--retention";

/// What was measured with a retention.
struct Kept {
    retention: &'static str,
    report: Report,
}

/// Looks whether this `flo` can be measured, before anything takes long.
///
/// # Errors
/// If its benches do not know the option.
pub(super) fn expect_support(bench: &Bench<'_>) -> Result<()> {
    for workload in ["start", "steps"] {
        if !bench.help(&["bench", workload])?.contains(OPTION) {
            bail!(
                "expected `flo bench {workload}` to know {OPTION}, but this flo does not; name other series with \
                 --only"
            );
        }
    }
    Ok(())
}

/// Measures starts and whole runs at half of their peak.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::default().paragraph(format!(
        "Runs were started at {SHARE_JUDGED} % of the peak that was measured for each workload just before. With a \
         retention of {}, runs expired throughout the measurement while new ones started; with a retention of {}, \
         no run expired.",
        RETENTIONS[1], RETENTIONS[0]
    ));
    let mut all = Vec::new();
    let mut figures = Vec::new();
    for workload in [Load::steps(), Load::start()] {
        let peak = peak::find(bench, &workload)?;
        let mut kept = Vec::new();
        for retention in RETENTIONS {
            let load = workload
                .clone()
                .with("--rate", peak::share(&peak, SHARE_JUDGED))
                .with(OPTION, retention)
                .labeled("kept", retention)
                .warmed_up(WARM_UP_MIN);
            let report = bench.measure_alone(&load)?;
            kept.push(Kept { retention, report });
        }
        let name = format!("retention-{}", peak.workload);
        let title = format!("flo bench {}, by how long runs are kept", peak.workload);
        let options = ["--by", "kept", "--title", &title];
        let drawn = bench.plot(&name, &options, kept.iter().map(|kept| &kept.report))?;
        figures.push((title, drawn));
        all.extend(kept);
    }
    section = section.table(&table(&all));
    for verdict in verdicts(&all) {
        section = section.paragraph(verdict);
    }
    for (title, drawn) in figures {
        section = section.figure(&title, drawn);
    }
    Ok(section)
}

/// Whether loads with steps meet the target.
fn verdicts(all: &[Kept]) -> Vec<String> {
    let with_steps = all.iter().filter(|kept| kept.report.transition.is_some());
    let verdict = |Kept { retention, report }: &Kept| {
        format!("Steps, kept for {retention}: {}", spread::verdict(report))
    };
    with_steps.map(verdict).collect()
}

fn table(all: &[Kept]) -> Table {
    let mut table = Table::new(&[
        "workload",
        "kept",
        "target/s",
        "per second",
        "p50",
        "p99",
        "transition p50",
        "transition p99",
        "CPU, leader first",
        "written/run",
        "memory, MiB",
        "data, MiB",
        "not started",
        "errors",
    ]);
    for Kept { retention, report } in all {
        let [p50, p99, transition_p50, transition_p99] = latencies(report);
        table.add([
            report.workload.clone(),
            (*retention).to_owned(),
            rate_wanted(report),
            whole(report.rate),
            p50,
            p99,
            transition_p50,
            transition_p99,
            of_nodes(report, |node| node.processor_percent, whole),
            of_nodes(report, |node| node.written_bytes_per_run, whole),
            of_nodes(report, |node| node.resident_bytes, mib),
            of_nodes(report, |node| node.data_bytes, mib),
            report.not_started.to_string(),
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
    fn loads_with_steps_are_held_to_the_target() {
        let all = ["start", "steps"].map(|workload| Kept {
            retention: "1d",
            report: report(workload, 1_500.0, 3.0),
        });
        expect![[r#"
            [
                "Steps, kept for 1d: At 50 % of the peak the p99 is 2.00 times the median for runs and 2.00 times for transitions. The target of at most 5 is met.",
            ]
        "#]].assert_debug_eq(&verdicts(&all));
    }

    #[test]
    fn each_retention_is_a_row() {
        let all = RETENTIONS.map(|retention| {
            let mut report = report("start", 4_500.0, 3.0);
            report.rate_wanted = Some(4_500);
            Kept { retention, report }
        });
        expect![[r#"
            | workload | kept | target/s | per second |  p50 |  p99 | transition p50 | transition p99 | CPU, leader first | written/run |   memory, MiB |   data, MiB | not started | errors |
            |----------|------|---------:|-----------:|-----:|-----:|---------------:|---------------:|------------------:|------------:|--------------:|------------:|------------:|-------:|
            | start    | 1d   |     4500 |       4500 | 3.00 | 6.00 |              - |              - |           44 / 44 | 3312 / 3312 | 102.0 / 101.0 | 50.0 / 50.0 |           0 |      0 |
            | start    | 5s   |     4500 |       4500 | 3.00 | 6.00 |              - |              - |           44 / 44 | 3312 / 3312 | 102.0 / 101.0 | 50.0 / 50.0 |           0 |      0 |"#]].assert_eq(&table(&all).markdown().join("\n"));
    }
}
