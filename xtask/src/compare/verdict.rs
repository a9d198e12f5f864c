//! The tables and the JSON at the end.

use serde_json::{Value, json};

use super::options::{Contest, Options};
use super::report::Report;
use super::results::{Medians, Pair, Ratio, Results, Series};
use super::{etcd, flotilla, restate};
use crate::machine::Machine;
use crate::table::Table;

/// The pairs that are compared: ours first.
const PAIRS: [Pair; 10] = [
    pair(flotilla::STARTS_128, etcd::SPREAD),
    pair(flotilla::STARTS_128, etcd::LEADER),
    pair(flotilla::STARTS_1, etcd::ALONE),
    pair(flotilla::STEPS_64, restate::THREE.series(64)),
    pair(flotilla::STEPS_64, restate::SINGLE.series(64)),
    pair(flotilla::STEPS_64, restate::THREE_DEFAULT.series(64)),
    pair(flotilla::STEPS_64, restate::SINGLE_DEFAULT.series(64)),
    pair(flotilla::STEPS_1, restate::THREE.series(1)),
    pair(flotilla::STEPS_1, restate::SINGLE.series(1)),
    pair(flotilla::PYTHON_64, restate::SINGLE.series(64)),
];

const fn pair(ours: Series, theirs: Series) -> Pair {
    Pair { ours, theirs }
}

/// Each series with its medians, and its slowest and fastest round.
pub(super) fn table(results: &Results) -> Vec<String> {
    let mut table = Table::new(&[
        "WORKLOAD", "SYSTEM", "CLIENTS", "PER S", "SLOWEST", "FASTEST", "P50 MS", "P99 MS",
        "ERRORS",
    ]);
    for (series, reports) in results.series() {
        let Medians {
            rate,
            p50_ms,
            p99_ms,
        } = Medians::of(reports);
        let rates = reports.iter().map(|report| report.rate);
        let slowest = rates.clone().fold(f64::INFINITY, f64::min);
        let fastest = rates.fold(0.0, f64::max);
        let errors: u64 = reports.iter().map(|report| report.errors).sum();
        table.add([
            series.workload.to_owned(),
            series.system.to_owned(),
            series.clients.to_string(),
            format!("{rate:.0}"),
            format!("{slowest:.0}"),
            format!("{fastest:.0}"),
            format!("{p50_ms:.2}"),
            format!("{p99_ms:.2}"),
            errors.to_string(),
        ]);
    }
    table.render()
}

/// The ratios between our series and the others: above 1 where ours is better. `None` unless both were measured.
pub(super) fn ratios(results: &Results) -> Vec<String> {
    let compared = compared(results);
    if compared.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["OURS", "THEIRS", "CLIENTS", "RATE", "P50", "P99"]);
    for (Pair { ours, theirs }, ratio) in compared {
        table.add([
            format!("{}, {}", ours.workload, ours.system),
            format!("{}, {}", theirs.workload, theirs.system),
            ours.clients.to_string(),
            format!("{:.2}", ratio.rate),
            format!("{:.2}", ratio.p50),
            format!("{:.2}", ratio.p99),
        ]);
    }
    table.render()
}

/// The whole result as JSON.
pub(super) fn json(results: &Results, machine: &Machine, options: &Options) -> Value {
    let series = results.series().iter();
    let series: Vec<Value> = series
        .map(|(series, reports)| show(*series, reports))
        .collect();
    let ratios = compared(results).into_iter();
    let ratios: Vec<Value> = ratios
        .map(|(Pair { ours, theirs }, ratio)| {
            json!({
                "ours": {"workload": ours.workload, "system": ours.system},
                "theirs": {"workload": theirs.workload, "system": theirs.system},
                "clients": ours.clients,
                "rate": ratio.rate,
                "p50": ratio.p50,
                "p99": ratio.p99,
            })
        })
        .collect();
    let contests: Vec<&str> = options
        .contests
        .iter()
        .map(|it| Contest::name(*it))
        .collect();
    json!({
        "machine": machine.json(),
        "contests": contests,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "warm_up_seconds": options.warm_up,
        "series": series,
        "ratios": ratios,
    })
}

fn show(series: Series, reports: &[Report]) -> Value {
    let Medians {
        rate,
        p50_ms,
        p99_ms,
    } = Medians::of(reports);
    let rounds: Vec<Value> = reports.iter().map(Report::json).collect();
    json!({
        "workload": series.workload,
        "system": series.system,
        "clients": series.clients,
        "median": {"runs_per_s": rate, "p50_ms": p50_ms, "p99_ms": p99_ms},
        "rounds": rounds,
    })
}

/// The pairs of which both series were measured.
fn compared(results: &Results) -> Vec<(Pair, Ratio)> {
    let pairs = PAIRS.into_iter();
    let compared = pairs.filter_map(|pair| Some((pair, results.ratio(pair)?)));
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::report;
    use super::*;

    /// Two rounds in which we are four times as fast as three nodes of Restate.
    fn results() -> Results {
        let mut results = Results::default();
        for extra in [0.0, 100.0] {
            results.add(flotilla::STEPS_64, report(2_400.0 + extra, 20.0));
            results.add(restate::THREE.series(64), report(600.0 + extra / 4.0, 90.0));
        }
        results
    }

    #[test]
    fn each_series_is_a_line_with_its_medians_and_its_range() {
        assert_eq!(
            table(&results()),
            [
                "WORKLOAD         SYSTEM             CLIENTS  PER S  SLOWEST  FASTEST  P50 MS  P99 MS  ERRORS",
                "runs of 3 steps  Flotilla, 3 nodes       64   2450     2400     2500   20.00  200.00       0",
                "runs of 3 steps  Restate, 3 nodes        64    612      600      625   90.00  900.00       0",
            ]
        );
    }

    #[test]
    fn only_what_was_measured_on_both_sides_is_compared() {
        let lines = ratios(&results());
        assert_eq!(lines.len(), 2, "{lines:?}");
        let line = "runs of 3 steps, Flotilla, 3 nodes  runs of 3 steps, Restate, 3 nodes       64  4.00  4.50  4.50";
        assert_eq!(lines[1], line);
    }

    #[test]
    fn the_report_holds_every_round() {
        let options = Options::read(&["--rounds".to_owned(), "2".to_owned()]).unwrap();
        let machine = Machine::look(Vec::new());
        let report = json(&results(), &machine, &options);
        assert_eq!(report["rounds"], 2);
        assert_eq!(report["series"][0]["rounds"].as_array().unwrap().len(), 2);
        assert_eq!(report["series"][1]["median"]["runs_per_s"], 612.5);
        assert_eq!(report["ratios"][0]["rate"], 4.0);
        assert_eq!(report["ratios"][0]["theirs"]["system"], "Restate, 3 nodes");
        assert_eq!(report["contests"][3], "python");
    }
}
