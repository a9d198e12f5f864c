//! The same load, measured several times.

use super::super::report::Report;

/// The reports of all rounds, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds(Vec<Report>);

impl Rounds {
    /// Adds the report of the next round.
    pub(super) fn add(&mut self, report: Report) {
        self.0.push(report);
    }

    /// The round with the median throughput; of an even number, the slower of the two in the middle.
    ///
    /// # Panics
    /// If there was no round.
    pub(super) fn median(&self) -> &Report {
        let mut by_rate: Vec<&Report> = self.0.iter().collect();
        by_rate.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        by_rate[(by_rate.len() - 1) / 2]
    }

    /// The last round.
    ///
    /// # Panics
    /// If there was no round.
    pub(super) fn last(&self) -> &Report {
        self.0.last().expect("a round was measured")
    }

    /// The throughput divided by that of other rounds, from the medians.
    pub(super) fn of(&self, first: &Self) -> f64 {
        self.median().rate / first.median().rate
    }

    /// The same ratio for each round.
    pub(super) fn each_of(&self, first: &Self) -> impl Iterator<Item = f64> {
        let pairs = self.0.iter().zip(&first.0);
        pairs.map(|(report, first)| report.rate / first.rate)
    }

    /// How many operations were measured.
    pub(super) fn completed(&self) -> u64 {
        self.0.iter().map(|report| report.completed).sum()
    }

    /// How many failed.
    pub(super) fn errors(&self) -> u64 {
        self.0.iter().map(|report| report.errors).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::report::tests::report;
    use super::*;

    /// Rounds with these throughputs.
    pub(in super::super) fn rounds(workload: &str, rates: &[f64]) -> Rounds {
        let reports = rates.iter().map(|rate| report(workload, *rate, 6.0));
        Rounds(reports.collect())
    }

    #[test]
    fn the_median_is_that_of_the_rates() {
        let three = rounds("start", &[9_000.0, 12_000.0, 10_000.0]);
        assert!((three.median().rate - 10_000.0).abs() < 1e-9);
        assert!((three.last().rate - 10_000.0).abs() < 1e-9);
        let two = rounds("start", &[9_000.0, 12_000.0]);
        assert!((two.median().rate - 9_000.0).abs() < 1e-9);
    }

    #[test]
    fn rounds_are_held_against_those_of_others_by_medians_and_one_by_one() {
        let first = rounds("steps", &[1_000.0, 2_000.0, 1_600.0]);
        let later = rounds("steps", &[1_200.0, 1_000.0, 800.0]);
        assert!((later.of(&first) - 1_000.0 / 1_600.0).abs() < 1e-9);
        let each: Vec<f64> = later.each_of(&first).collect();
        assert_eq!(each, [1.2, 0.5, 0.5]);
        assert_eq!(later.completed(), 12_000);
        assert_eq!(later.errors(), 0);
    }
}
