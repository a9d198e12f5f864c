//! The distance between tail and median of a load below the peak.

use super::report::{Latency, Report};
use super::show::{UNKNOWN, fine};

/// The percentage of the peak for which there is a target.
pub(super) const SHARE_JUDGED: u8 = 50;

/// The target: the maximum ratio of the p99 to the median.
const SPREAD_MAX: f64 = 5.0;

/// The p99 divided by the median.
pub(super) fn of(latency: Option<Latency>) -> String {
    latency.map_or_else(|| UNKNOWN.to_owned(), |latency| fine(latency.spread()))
}

/// Whether a load at [`SHARE_JUDGED`] percent of its peak meets the target.
pub(super) fn verdict(report: &Report) -> String {
    let spreads = [Some(report.latency), report.transition];
    let is_met = |latency: Latency| latency.spread() <= SPREAD_MAX;
    let is_met = spreads.into_iter().flatten().all(is_met);
    let [runs, transitions] = spreads.map(of);
    let is_met = if is_met { "is met" } else { "is missed" };
    format!(
        "At {SHARE_JUDGED} % of the peak the p99 is {runs} times the median for runs and {transitions} times for \
         transitions. The target of at most {SPREAD_MAX} {is_met}."
    )
}
