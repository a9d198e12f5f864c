//! The figures of reports.

use super::Figure;
use super::axis::Axis;
use super::panel::{Line, Panel};
use crate::commands::bench::report::{Latency, Report, float};

/// Latencies that differ by a larger factor get a logarithmic axis.
const SPREAD_LINEAR_MAX: f64 = 20.0;

/// A point of a series: its position, its line and its measurement.
#[derive(Debug)]
pub(in super::super) struct Point<'a> {
    /// The value on the x axis.
    pub(in super::super) x: f64,
    /// The line's name; empty if there is only one line.
    pub(in super::super) line: String,
    /// The measurement.
    pub(in super::super) report: &'a Report,
}

/// The latencies and the throughput of one measurement.
pub(in super::super) fn of_one(report: &Report) -> Figure {
    let whole = curve(report.latency_of.clone(), &report.latency);
    let stages = report.stages.iter();
    let stages = stages.map(|stage| curve(stage.name.clone(), &stage.latency));
    let lines = [whole].into_iter().chain(stages).collect();
    Figure {
        title: report.title(),
        panels: vec![
            latencies(lines),
            throughput(vec![over_time(String::new(), report)], &report.unit),
        ],
    }
}

/// The same for several named measurements.
pub(in super::super) fn of_many(title: String, reports: &[(String, &Report)]) -> Figure {
    let unit = reports
        .first()
        .map_or("runs", |(_, report)| report.unit.as_str());
    let curves = reports.iter();
    let curves = curves.map(|(name, report)| curve(name.clone(), &report.latency));
    let times = reports.iter();
    let times = times.map(|(name, report)| over_time(name.clone(), report));
    Figure {
        title,
        panels: vec![
            latencies(curves.collect()),
            throughput(times.collect(), unit),
        ],
    }
}

/// Throughput and latency over a value that differs between measurements.
pub(in super::super) fn series(title: String, label: &str, points: &[Point]) -> Figure {
    let unit = points
        .first()
        .map_or("runs", |point| point.report.unit.as_str());
    let rates = lines(points, "", |report| Some(report.runs_per_s));
    let medians = lines(points, "p50", |report| report.latency.p50_ms);
    let tails = lines(points, "p99", |report| report.latency.p99_ms);
    let latencies: Vec<Line> = medians.into_iter().chain(tails).collect();
    let x = || {
        let figures = points.iter().map(|point| point.x);
        spread(label, figures)
    };
    let ms = figures(&latencies, 1);
    Figure {
        title,
        panels: vec![
            Panel {
                x: x(),
                y: Axis::linear(&format!("{unit} a second"), figures(&rates, 1)),
                lines: rates,
            },
            Panel {
                x: x(),
                y: Axis::logarithmic("latency, ms", ms),
                lines: latencies,
            },
        ],
    }
}

/// One line for each name among the points, ordered by x, without unknown values.
fn lines(points: &[Point], what: &str, figure: impl Fn(&Report) -> Option<f64>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for point in points {
        let name = format!("{} {what}", point.line).trim().to_owned();
        let Some(figure) = figure(point.report) else {
            continue;
        };
        let place = (point.x, figure);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(place),
            None => lines.push(Line {
                name,
                points: vec![place],
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    lines
}

/// Latencies by quantile: the rarer, the further to the right.
fn latencies(lines: Vec<Line>) -> Panel {
    let x = Axis::logarithmic("share of all that took no longer", figures(&lines, 0));
    let y = spread("latency, ms", figures(&lines, 1));
    Panel {
        x: x.shown(share),
        y,
        lines,
    }
}

fn throughput(lines: Vec<Line>, unit: &str) -> Panel {
    Panel {
        x: Axis::linear("seconds", figures(&lines, 0)),
        y: Axis::linear(&format!("{unit} in each second"), figures(&lines, 1)),
        lines,
    }
}

/// A logarithmic axis if the values are positive and far apart, otherwise a linear one.
fn spread(label: &str, figures: impl Iterator<Item = f64> + Clone) -> Axis {
    let smallest = figures.clone().fold(f64::INFINITY, f64::min);
    let largest = figures.clone().fold(0.0, f64::max);
    if smallest > 0.0 && largest > smallest * SPREAD_LINEAR_MAX {
        Axis::logarithmic(label, figures)
    } else {
        Axis::linear(label, figures)
    }
}

/// The curve of latencies: for each quantile, one in how many operations took longer, and the
/// latency.
fn curve(name: String, latency: &Latency) -> Line {
    let all = float(latency.count).max(1.0);
    let points = latency.quantiles.iter().map(|(share, ms)| {
        let rest = 1.0 - share;
        // The longest latency stands for itself.
        let of_each = if rest * all < 1.0 { all } else { 1.0 / rest };
        (of_each, *ms)
    });
    Line {
        name,
        points: points.collect(),
    }
}

fn over_time(name: String, report: &Report) -> Line {
    let seconds = (1_u32..).map(f64::from);
    let counts = report.per_second.iter().map(|count| float(*count));
    Line {
        name,
        points: seconds.zip(counts).collect(),
    }
}

/// The values of all lines on one axis.
fn figures(lines: &[Line], direction: usize) -> impl Iterator<Item = f64> + Clone {
    let points = lines.iter().flat_map(|line| line.points.iter());
    points.map(move |(x, y)| if direction == 0 { *x } else { *y })
}

/// One in `of_each` as the share of the others.
fn share(of_each: f64) -> String {
    let percent = 100.0 - 100.0 / of_each;
    format!("{} %", (percent * 1e5).round() / 1e5)
}
