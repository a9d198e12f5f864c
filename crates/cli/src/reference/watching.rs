//! The dashboard and the alerts name only metrics and labels that a node exposes, and each alert
//! has a section in the operations guide.

use super::expression::named;
use super::root;
use flotilla_server::{METRICS, Metric, MetricKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// Labels that Prometheus adds to every sample.
const SCRAPE_LABELS: [&str; 2] = ["instance", "job"];
/// What Prometheus reports about a node.
const UP: &str = "up";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rules() -> Vec<Value> {
    let alerts: Value =
        serde_yaml::from_str(&read("deploy/prometheus/alerts.yml")).expect("alerts in YAML");
    let groups = alerts["groups"].as_array().expect("groups of rules");
    let rules = groups.iter().filter_map(|group| group["rules"].as_array());
    rules.flatten().cloned().collect()
}

/// The metric behind the name of a series: a histogram has three series.
fn metric_of(series: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| match metric.kind {
        MetricKind::Counter | MetricKind::Gauge => metric.name == series,
        MetricKind::Histogram => {
            let suffix = series.strip_prefix(metric.name);
            suffix.is_some_and(|suffix| ["_bucket", "_sum", "_count"].contains(&suffix))
        }
    })
}

/// The metrics and labels of the expression that no node exposes; `shown` are labels that a legend
/// or an annotation prints.
fn unknown(expression: &str, shown: &[String]) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut known: BTreeSet<&str> = SCRAPE_LABELS.into_iter().collect();
    let named = named(expression);
    assert!(!named.metrics.is_empty(), "{expression} names a metric");
    for (series, selected) in &named.metrics {
        let metric = metric_of(series);
        let labels = metric.map_or(&[][..], |metric| metric.labels);
        if metric.is_none() && series != UP {
            unknown.push(series.clone());
        }
        known.extend(labels);
        if series.ends_with("_bucket") {
            known.insert("le");
        }
        let is_strange = |label: &&String| {
            !labels.contains(&label.as_str()) && !SCRAPE_LABELS.contains(&label.as_str())
        };
        let strange = selected.iter().filter(is_strange);
        unknown.extend(strange.map(|label| format!("{series}{{{label}}}")));
    }
    let grouped = named.labels.iter().chain(shown);
    unknown.extend(
        grouped
            .filter(|label| !known.contains(label.as_str()))
            .cloned(),
    );
    unknown
}

/// The labels in `{{label}}` and `{{ $labels.label }}`.
fn shown(text: &str) -> Vec<String> {
    let parts = text.split("{{").skip(1);
    let inside = parts.filter_map(|part| Some(part.split_once("}}")?.0.trim()));
    let labels = inside.filter(|label| *label != "$value");
    labels
        .map(|label| label.trim_start_matches("$labels.").to_owned())
        .collect()
}

#[test]
fn every_alert_names_what_a_node_exposes_and_its_section_of_the_guide() {
    const GUIDE: &str = "docs/operations/troubleshoot.md";
    let guide = read(GUIDE);
    let (_, guide) = guide
        .split_once("\n## Alerts\n")
        .expect("a section of alerts");
    let guide = guide.split("\n## ").next().unwrap_or_default();
    let sections = guide.lines().filter_map(|line| line.strip_prefix("### "));
    let mut sections: BTreeSet<&str> = sections.collect();
    let rules = rules();
    assert!(
        rules.len() > 10,
        "the walk reaches the alerts: {}",
        rules.len()
    );
    for rule in &rules {
        let text = |path: &str| {
            rule.pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("/alert");
        let labels = [
            shown(text("/annotations/summary")),
            shown(text("/annotations/description")),
        ];
        assert_eq!(unknown(text("/expr"), &labels.concat()), [""; 0], "{name}");
        let anchor = format!("{GUIDE}#{}", name.to_lowercase());
        assert_eq!(text("/annotations/runbook"), anchor);
        assert!(sections.remove(name), "{GUIDE} has a section {name}");
        assert!(
            ["critical", "warning"].contains(&text("/labels/severity")),
            "{name}"
        );
    }
    assert_eq!(sections, BTreeSet::new(), "each section is an alert's");
}

#[test]
fn every_panel_of_the_dashboard_shows_what_a_node_exposes() {
    let dashboard: Value =
        serde_json::from_str(&read("deploy/grafana/flotilla.json")).expect("a dashboard in JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut expressions_count = 0;
    for target in panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        let expression = target["expr"].as_str().expect("an expression");
        let legend = target["legendFormat"].as_str().unwrap_or_default();
        assert_eq!(unknown(expression, &shown(legend)), [""; 0], "{expression}");
        expressions_count += 1;
    }
    assert!(
        expressions_count > 40,
        "the walk reaches the panels: {expressions_count}"
    );
    for variable in dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
    {
        if let Some(query) = variable["definition"].as_str() {
            assert_eq!(unknown(query, &[]), [""; 0], "{query}");
        }
    }
}

#[test]
fn what_is_not_exposed_is_found() {
    let rate = "sum by (method, code) (rate(flotilla_grpc_requests_total{kind=\"x\"}[5m]))";
    assert_eq!(unknown(rate, &[]), ["flotilla_grpc_requests_total{kind}"]);
    let gone = "max by (peer) (flotilla_lost_total)";
    assert_eq!(unknown(gone, &[]), ["flotilla_lost_total", "peer"]);
    // A histogram has buckets, but no series under its plain name.
    assert_eq!(
        unknown("flotilla_raft_log_fsync_duration_seconds", &[]).len(),
        1
    );
    let sync = "flotilla_raft_log_fsync_duration_seconds_bucket";
    assert_eq!(
        unknown(sync, &["le".to_owned(), "node".to_owned()]),
        ["node"]
    );
}

#[test]
fn rates_are_taken_of_what_only_grows() {
    let expressions = rules().into_iter().map(|rule| rule["expr"].to_string());
    let dashboard = read("deploy/grafana/flotilla.json");
    for text in expressions.chain([dashboard]) {
        for (start, function) in [text.match_indices("rate("), text.match_indices("increase(")]
            .into_iter()
            .flatten()
        {
            let rest = &text[start + function.len()..];
            let name = rest.split(['{', '[']).next().unwrap_or_default();
            let metric = metric_of(name).unwrap_or_else(|| panic!("{name} is a metric"));
            assert_ne!(metric.kind, MetricKind::Gauge, "{name}");
        }
    }
}
