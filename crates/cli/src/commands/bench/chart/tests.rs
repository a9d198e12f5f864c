//! Figures, compared as text.

use super::figures::series;
use super::*;
use crate::commands::bench::load::{LoadFlags, Measured};
use crate::commands::bench::measurement::Look;
use crate::commands::bench::report::{Conditions, Report};
use crate::commands::bench::usage::Snapshot;
use crate::output::Format;
use expect_test::expect;
use std::time::{Duration, Instant};

/// A report of as many seconds as clients, with equal latencies.
fn report(clients: u16, latency: Duration) -> Report {
    let mut measured = Measured::nothing(&["a < b"]);
    for second in 0..3 {
        for _ in 0..u64::from(clients) * 10 {
            measured.add(latency, Duration::from_secs(second));
        }
    }
    measured.add_stage(0, latency);
    measured.elapsed = Duration::from_secs(3);
    let flags = LoadFlags::of_count(1, clients, 1);
    let conditions = Conditions::new("steps", "runs", "run");
    let look = Look {
        nodes: Snapshot::default(),
        own_cpu_ms: 0,
        at: Instant::now(),
        at_ms: 0,
    };
    Report::new(&flags, conditions, &measured, &[look.clone(), look])
}

/// The visible texts of the figure.
fn texts(figure: &Figure) -> Vec<String> {
    let svg = figure.svg();
    let texts = svg
        .split("</text>")
        .filter_map(|part| part.rsplit_once('>'));
    texts.map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn a_measurement_is_drawn_with_its_title_its_units_and_a_legend() {
    let figure = of_one(&report(8, Duration::from_millis(5)));
    expect![[r#"
        flo bench steps, 8 clients: 80 runs/s|0 %|50 %|80 %|90 %|95 %|98 %|99 %|99.5 %|99.8 %|0|1|2|3|4|5|share of all that took no longer|latency, ms|run|a &lt; b|0|0.5|1|1.5|2|2.5|3|0|20|40|60|80|seconds|runs in each second|
    "#]].assert_eq(&texts(&figure).join("|"));
    let svg = figure.svg();
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n")
    );
    assert_eq!(svg.matches("<polyline").count(), 3);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn a_series_has_a_line_for_each_name_from_left_to_right() {
    let reports = [(64, 40), (1, 2), (512, 300)];
    let reports = reports.map(|(clients, ms)| report(clients, Duration::from_millis(ms)));
    let points = reports.iter().zip([64.0, 1.0, 512.0]);
    let points: Vec<Point> = points
        .map(|(report, x)| Point {
            x,
            line: String::new(),
            report,
        })
        .collect();
    let figure = series("by clients".to_owned(), "clients", &points);
    expect![[r#"
        by clients|1|2|5|10|20|50|100|200|500|1000|0|1000|2000|3000|4000|5000|6000|clients|runs a second|1|2|5|10|20|50|100|200|500|1000|2|5|10|20|50|100|200|500|clients|latency, ms|p50|p99|
    "#]].assert_eq(&texts(&figure).join("|"));
    let rates = &figure.panels[0].lines[0].points;
    expect!["[(1.0, 10.0), (64.0, 640.0), (512.0, 5120.0)]"].assert_eq(&format!("{rates:?}"));
}

#[test]
fn a_report_without_measurements_can_be_drawn() {
    let look = Look {
        nodes: Snapshot::default(),
        own_cpu_ms: 0,
        at: Instant::now(),
        at_ms: 0,
    };
    let flags = LoadFlags::of_count(1, 1, 1);
    let conditions = Conditions::new("start", "starts", "acknowledged start");
    let measured = Measured::nothing(&[]);
    let report = Report::new(&flags, conditions, &measured, &[look.clone(), look]);
    let svg = of_one(&report).svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn a_file_that_cannot_be_drawn_to_is_refused_with_a_hint() {
    let refusal = |path: &str| {
        let refused = check(Path::new(path)).expect_err(path);
        refused.render(Format::Text)
    };
    expect![[r#"
        error: expected a file name that ends in .svg, but it is figure.png
        hint: the figure is an SVG image; a browser displays it
    "#]]
    .assert_eq(&refusal("figure.png"));
    expect![[r#"
        error: expected to write no/such/folder/figure.svg, but no such file or directory
        hint: its directory must exist and be writable
    "#]]
    .assert_eq(&refusal("no/such/folder/figure.svg"));
}
