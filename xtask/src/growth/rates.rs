//! Work that begins at a rate below the peak, whether the cluster keeps up or not.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::peak;
use super::report::Report;
use super::section::Section;
use super::show::{fine, latencies, rate_wanted, whole};
use super::spread::{self, SHARE_JUDGED};
use crate::table::Table;

/// Shares of the peak, in percent.
const SHARES: [u8; 3] = [25, SHARE_JUDGED, 75];

/// What was measured at a share of the peak.
struct Paced {
    percent: u8,
    report: Report,
}

/// Measures whole runs below their peak.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let peak = peak::find(bench, &Load::steps())?;
    let mut paced = Vec::new();
    for percent in SHARES {
        let load = Load::steps().with("--rate", peak::share(&peak, percent));
        let report = bench.measure_alone(&load)?;
        paced.push(Paced { percent, report });
    }
    let title = ["--x", "rate", "--title", "By the rate at which runs begin"];
    let reports = paced.iter().map(|paced| &paced.report);
    let drawn = bench.plot("rates", &title, reports)?;
    let section = Section::default()
        .paragraph(format!(
            "`flo bench steps` reached {} runs per second at its peak, with {} clients. Then runs of three steps began \
             at a fixed rate, a share of that peak; latencies count from the time at which each was due to begin.",
            whole(peak.rate),
            peak.clients
        ))
        .table(&table(&paced))
        .paragraph(verdict(&paced));
    Ok(section.figure("Throughput and latency by the rate", drawn))
}

fn table(paced: &[Paced]) -> Table {
    let mut table = Table::new(&[
        "of peak, %",
        "target/s",
        "runs/s",
        "p50",
        "p99",
        "p99/p50",
        "transition p50",
        "transition p99",
        "transition p99/p50",
        "not started",
        "errors",
    ]);
    for Paced { percent, report } in paced {
        let [p50, p99, transition_p50, transition_p99] = latencies(report);
        table.add([
            percent.to_string(),
            rate_wanted(report),
            whole(report.rate),
            p50,
            p99,
            fine(report.latency.spread()),
            transition_p50,
            transition_p99,
            spread::of(report.transition),
            report.not_started.to_string(),
            report.errors.to_string(),
        ]);
    }
    table
}

/// How far the tail is from the median where there is a target for it.
fn verdict(paced: &[Paced]) -> String {
    let judged = paced.iter().find(|paced| paced.percent == SHARE_JUDGED);
    judged.map_or_else(String::new, |paced| spread::verdict(&paced.report))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::report::tests::report;
    use super::*;

    fn paced() -> Vec<Paced> {
        let paced = |percent: u8| {
            let mut report = report("steps", 10.0 * f64::from(percent), 6.0);
            report.rate_wanted = Some(10 * u64::from(percent));
            Paced { percent, report }
        };
        SHARES.map(paced).into()
    }

    #[test]
    fn each_share_is_a_row() {
        expect![[r#"
            | of peak, % | target/s | runs/s |  p50 |   p99 | p99/p50 | transition p50 | transition p99 | transition p99/p50 | not started | errors |
            |-----------:|---------:|-------:|-----:|------:|--------:|---------------:|---------------:|-------------------:|------------:|-------:|
            |         25 |      250 |    250 | 6.00 | 12.00 |    2.00 |          12.50 |          25.00 |               2.00 |           0 |      0 |
            |         50 |      500 |    500 | 6.00 | 12.00 |    2.00 |          12.50 |          25.00 |               2.00 |           0 |      0 |
            |         75 |      750 |    750 | 6.00 | 12.00 |    2.00 |          12.50 |          25.00 |               2.00 |           0 |      0 |"#]].assert_eq(&table(&paced()).markdown().join("\n"));
    }

    #[test]
    fn the_target_is_for_half_of_the_peak() {
        let mut paced = paced();
        expect!["At 50 % of the peak the p99 is 2.00 times the median for runs and 2.00 times for transitions. The target of at most 5 is met."].assert_eq(&verdict(&paced));
        paced[0].report.latency.p99_ms = 1_000.0;
        assert!(verdict(&paced).ends_with("is met."));
        paced[1].report.latency.p99_ms = 31.0;
        assert!(verdict(&paced).ends_with("is missed."));
    }
}
