//! The peak throughput of a cluster, from which rates are derived.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::report::Report;

/// The numbers of clients to try.
pub(super) const CLIENTS: [u16; 2] = [64, 512];

/// Finds the peak of a workload: the highest throughput.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn find(bench: &Bench<'_>, workload: &Load) -> Result<Report> {
    let measure = |clients| bench.measure_alone(&workload.clone().with("--clients", clients));
    let [few, many] = CLIENTS;
    let (few, many) = (measure(few)?, measure(many)?);
    Ok(if few.rate > many.rate { few } else { many })
}

/// A percentage of the peak as a rate: a whole number, and at least 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are far below 2^32 and above 0"
)]
pub(super) fn share(peak: &Report, percent: u8) -> u32 {
    (peak.rate * f64::from(percent) / 100.0).round().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn a_share_is_a_whole_rate() {
        let peak = report("steps", 1_210.0, 50.0);
        assert_eq!(
            [25, 50, 100].map(|percent| share(&peak, percent)),
            [303, 605, 1_210]
        );
        assert_eq!(share(&report("steps", 0.1, 50.0), 50), 1);
    }
}
