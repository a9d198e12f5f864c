//! Formats figures for tables.

use std::time::Duration;

use super::report::{Node, Report};

/// Stands for an unknown figure.
pub(super) const UNKNOWN: &str = "-";

/// Two decimal places.
pub(super) fn fine(figure: f64) -> String {
    format!("{figure:.2}")
}

/// No decimal places.
pub(super) fn whole(figure: f64) -> String {
    format!("{figure:.0}")
}

/// A figure of each node, leader first.
pub(super) fn of_nodes<T>(
    report: &Report,
    figure: fn(&Node) -> Option<T>,
    show: impl Fn(T) -> String,
) -> String {
    let nodes = report.nodes.iter();
    let shown = nodes.map(|node| figure(node).map_or_else(|| UNKNOWN.to_owned(), &show));
    shown.collect::<Vec<_>>().join(" / ")
}

/// Bytes as MiB.
pub(super) fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) / (1 << 20);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Bytes in the largest fitting unit.
pub(super) fn size(bytes: u64) -> String {
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    if bytes < 1 << 20 {
        return format!("{} KiB", bytes >> 10);
    }
    format!("{} MiB", mib(bytes))
}

/// A time in seconds.
pub(super) fn seconds(duration: Duration) -> String {
    fine(duration.as_secs_f64())
}

/// The requested rate.
pub(super) fn rate_wanted(report: &Report) -> String {
    let rate = report.rate_wanted.map(|rate| rate.to_string());
    rate.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// The median and the p99 of a report's operations, then those of its transitions.
pub(super) fn latencies(report: &Report) -> [String; 4] {
    let transition = report.transition;
    let of_transition = |figure: Option<f64>| figure.map_or_else(|| UNKNOWN.to_owned(), fine);
    [
        fine(report.latency.p50_ms),
        fine(report.latency.p99_ms),
        of_transition(transition.map(|latency| latency.p50_ms)),
        of_transition(transition.map(|latency| latency.p99_ms)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_they_fill() {
        let sizes = [100, 10_240, 512_000, 4_096_000].map(size);
        assert_eq!(sizes, ["100 B", "10 KiB", "500 KiB", "3.9 MiB"]);
        assert_eq!(mib(0), "0.0");
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let mut report = report("start", 9_000.0, 6.0);
        assert_eq!(latencies(&report), ["6.00", "12.00", "-", "-"]);
        report.nodes[1].data_bytes = None;
        assert_eq!(of_nodes(&report, |node| node.data_bytes, mib), "50.0 / -");
    }
}
