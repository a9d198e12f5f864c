//! The results: a report for each round, medians, and ratios between systems.

use super::report::Report;
use crate::stages::say;

/// One system under one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Series {
    /// The workload.
    pub(super) workload: &'static str,
    /// The system.
    pub(super) system: &'static str,
    /// The number of concurrent clients.
    pub(super) clients: u16,
}

/// All results.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// Each series with its reports, in the order of their first report.
    series: Vec<(Series, Vec<Report>)>,
}

/// The medians of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Medians {
    /// Operations per second.
    pub(super) rate: f64,
    /// The median latency, in milliseconds.
    pub(super) p50_ms: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(super) p99_ms: f64,
}

/// Two systems with the same workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The results of Flotilla.
    pub(super) ours: Series,
    /// The results of the other system.
    pub(super) theirs: Series,
}

/// The ratios between two systems.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// Our rate divided by theirs, from the medians of all rounds.
    pub(super) rate: f64,
    /// Their median latency divided by ours.
    pub(super) p50: f64,
    /// Their p99 divided by ours.
    pub(super) p99: f64,
}

impl Results {
    /// Adds and prints the report of a round.
    pub(super) fn add(&mut self, series: Series, report: Report) {
        let Series {
            workload,
            system,
            clients,
        } = series;
        let Report {
            rate,
            p50_ms,
            p99_ms,
            errors,
            ..
        } = report;
        let clients = if clients == 1 {
            "1 client".to_owned()
        } else {
            format!("{clients} clients")
        };
        say(format!(
            "{workload}, {system}, {clients}: {rate:.0}/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, {errors} errors"
        ));
        match self.series.iter_mut().find(|(known, _)| *known == series) {
            Some((_, reports)) => reports.push(report),
            None => self.series.push((series, vec![report])),
        }
    }

    /// Each series with its reports, in the order of their first report.
    pub(super) fn series(&self) -> &[(Series, Vec<Report>)] {
        &self.series
    }

    /// The ratios of two series; `None` unless both were measured.
    pub(super) fn ratio(&self, pair: Pair) -> Option<Ratio> {
        let ours = self.medians(pair.ours)?;
        let theirs = self.medians(pair.theirs)?;
        Some(Ratio {
            rate: ours.rate / theirs.rate,
            p50: theirs.p50_ms / ours.p50_ms,
            p99: theirs.p99_ms / ours.p99_ms,
        })
    }

    fn medians(&self, series: Series) -> Option<Medians> {
        let mut known = self.series.iter();
        let (_, reports) = known.find(|(known, _)| *known == series)?;
        Some(Medians::of(reports))
    }
}

impl Medians {
    /// The median of each figure of the reports. There is at least one report.
    pub(super) fn of(reports: &[Report]) -> Self {
        let of = |figure: fn(&Report) -> f64| median(reports.iter().map(figure).collect());
        Self {
            rate: of(|report| report.rate),
            p50_ms: of(|report| report.p50_ms),
            p99_ms: of(|report| report.p99_ms),
        }
    }
}

/// The middle value, or the mean of the two middle values.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 {
        return figures[middle];
    }
    f64::midpoint(figures[middle - 1], figures[middle])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn report(rate: f64, p50_ms: f64) -> Report {
        Report {
            rate,
            p50_ms,
            p99_ms: 10.0 * p50_ms,
            completed: 1_000,
            errors: 0,
        }
    }

    pub(in super::super) fn pair() -> Pair {
        let series = |system| Series {
            workload: "three steps",
            system,
            clients: 64,
        };
        Pair {
            ours: series("Flotilla"),
            theirs: series("Restate"),
        }
    }

    #[test]
    fn a_median_is_in_the_middle_of_the_sorted_figures() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < 1e-9);
        assert!((median(vec![7.0]) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn ratios_are_above_one_where_we_are_ahead() {
        let Pair { ours, theirs } = pair();
        let mut results = Results::default();
        for (rate, p50_ms) in [(3_000.0, 20.0), (9_000.0, 5.0), (3_200.0, 25.0)] {
            results.add(ours, report(rate, p50_ms));
            results.add(theirs, report(800.0, 80.0));
        }
        let ratio = results.ratio(pair()).unwrap();
        assert!((ratio.rate - 4.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.p50 - 4.0).abs() < 1e-9, "{ratio:?}");
        assert_eq!(results.series()[0].1.len(), 3);
    }

    #[test]
    fn without_both_there_is_no_ratio() {
        let mut results = Results::default();
        results.add(pair().ours, report(1.0, 1.0));
        assert_eq!(results.ratio(pair()), None);
    }
}
