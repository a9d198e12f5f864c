//! `flo bench plot`: a figure of saved reports.

use super::chart::{self, Point};
use super::report::Report;
use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use crate::session::Session;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  flo bench plot clients-1.json clients-8.json clients-64.json --x clients --out clients.svg
  flo bench plot small.json large.json --x open_runs --by workload --out open-runs.svg
  flo bench plot before.json after.json --by version --out before-and-after.svg";

/// Draw a figure of saved bench reports
///
/// A report is the output of a bench with `-o json`. With --x, the figure shows throughput and
/// latency over a number that differs between the reports: a field, or a label given to the bench.
/// Without it, the figure shows the latency distribution and the throughput over time of each
/// report.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Plot {
    /// Report files
    #[arg(required = true, value_name = "REPORT.json")]
    reports: Vec<PathBuf>,

    /// Field or label for the x axis, with a number in each report
    #[arg(long, value_name = "FIELD")]
    x: Option<String>,

    /// Field or label that distinguishes the lines [default: workload; without --x, the file names]
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,

    /// Title of the figure [default: the workloads]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// SVG file to write
    #[arg(long, value_name = "FILE.svg")]
    out: PathBuf,
}

/// A saved report.
struct Saved {
    path: PathBuf,
    /// Its fields by name.
    fields: Value,
    report: Report,
}

impl Plot {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let saved: Vec<Saved> = self
            .reports
            .iter()
            .map(|path| Saved::read(path))
            .collect::<Result<_, _>>()?;
        let title = self.title.clone().unwrap_or_else(|| title(&saved));
        let figure = match &self.x {
            Some(x) => {
                let by = self.by.as_deref().unwrap_or("workload");
                let points = saved.iter().map(|saved| saved.point(x, by));
                let mut points = points.collect::<Result<Vec<_>, _>>()?;
                forget_lone_name(&mut points);
                chart::series(title, &x.replace('_', " "), &points)
            }
            None => {
                let name = |saved: &'_ Saved| match &self.by {
                    Some(by) => saved.text(by),
                    None => Ok(saved.name()),
                };
                let named = saved.iter().map(|saved| Ok((name(saved)?, &saved.report)));
                chart::of_many(title, &named.collect::<Result<Vec<_>, Failure>>()?)
            }
        };
        chart::check(&self.out)?;
        chart::write(&self.out, &figure)?;
        session
            .output
            .note(&format!("{} drawn", self.out.display()));
        Ok(())
    }
}

impl Saved {
    fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| file::unreadable(Code::FileUnreadable, &name, &error))?;
        let odd = |error: serde_json::Error| {
            let message = format!("expected the report of a bench in {name}, but {error}");
            Failure::new(Code::JsonInvalid, message)
                .with_hint("`flo bench start -o json > start.json` saves one")
        };
        let fields: Value = serde_json::from_str(&text).map_err(odd)?;
        let report = Report::deserialize(&fields).map_err(odd)?;
        let saved = Self {
            path: path.to_owned(),
            fields,
            report,
        };
        saved.expect_latencies()?;
        Ok(saved)
    }

    /// Refuses a report without latencies: drawn, it would look like the fastest one.
    fn expect_latencies(&self) -> Result<(), Failure> {
        if self.report.latency.count > 0 {
            return Ok(());
        }
        let message = format!(
            "expected latencies in every report, but {} does not have any",
            self.path.display()
        );
        Err(Failure::new(Code::Usage, message)
            .with_hint("no operation succeeded during that measurement: leave it out"))
    }

    /// The file's name without its directory.
    fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or(self.path.as_os_str());
        stem.to_string_lossy().into_owned()
    }

    fn point(&self, x: &str, by: &str) -> Result<Point<'_>, Failure> {
        let text = self.text(x)?;
        let number: f64 = text.parse().map_err(|_| {
            let message = format!(
                "expected a number as `{x}` of {}, but it is {text}",
                self.path.display()
            );
            Failure::new(Code::Usage, message)
        })?;
        Ok(Point {
            x: number,
            line: self.text(by)?,
            report: &self.report,
        })
    }

    /// A field or a label, as text.
    fn text(&self, field: &str) -> Result<String, Failure> {
        let labels = self.fields.get("labels");
        let label = labels.and_then(|labels| labels.get(field));
        let own = self.fields.get(field);
        if label.is_some() && own.is_some() {
            let message = format!(
                "expected `{field}` once in every report, but in {} it is a field and a label",
                self.path.display()
            );
            return Err(Failure::new(Code::Usage, message)
                .with_hint("measure again with another name for the label"));
        }
        match label.or(own) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
                let message = format!(
                    "expected `{field}` in every report, but {} lacks it",
                    self.path.display()
                );
                Err(Failure::new(Code::Usage, message)
                    .with_hint("a bench takes --label KEY=VALUE for what it cannot know"))
            }
        }
    }
}

/// Removes a name that all lines share.
fn forget_lone_name(points: &mut [Point]) {
    let first = points.first().map(|point| point.line.clone());
    if points
        .iter()
        .all(|point| Some(&point.line) == first.as_ref())
    {
        for point in points {
            point.line.clear();
        }
    }
}

fn title(saved: &[Saved]) -> String {
    let mut workloads: Vec<&str> = Vec::new();
    for saved in saved {
        if !workloads.contains(&saved.report.workload.as_str()) {
            workloads.push(&saved.report.workload);
        }
    }
    format!("flo bench {}", workloads.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;
    use serde_json::json;

    /// A report with these fields in addition to the common ones.
    fn report(clients: u16, labels: &Value) -> Value {
        json!({
            "workload": "steps", "labels": labels, "unit": "runs", "clients": clients, "connections": 1,
            "seconds": 10.0, "completed": 5, "errors": 0, "not_started": 0, "runs_per_s": 0.5,
            "latency_of": "run", "count": 5, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 2.0,
            "p999_ms": 2.0, "max_ms": 2.0, "quantiles": [[0.5, 1.0], [1.0, 2.0]], "stages": [],
            "nodes": [], "per_second": [1, 4],
        })
    }

    fn saved(name: &str, clients: u16, labels: &Value) -> Saved {
        let fields = report(clients, labels);
        let report = Report::deserialize(&fields).expect("a report");
        Saved {
            path: PathBuf::from(name),
            fields,
            report,
        }
    }

    #[test]
    fn a_series_is_over_a_field_or_a_label() {
        let saved = saved("a/one.json", 8, &json!({"open_runs": "1000"}));
        let point = saved.point("clients", "workload").expect("both are there");
        assert_eq!((point.x, point.line.as_str()), (8.0, "steps"));
        let point = saved.point("open_runs", "clients").expect("both are there");
        assert_eq!((point.x, point.line.as_str()), (1_000.0, "8"));
        assert_eq!(saved.name(), "one");
    }

    #[test]
    fn a_value_that_is_missing_or_not_a_number_is_refused_with_a_hint() {
        let saved = saved("one.json", 8, &json!({"system": "etcd"}));
        let refusal = |field: &str| {
            let refused = saved.point(field, "workload").expect_err(field);
            refused.render(Format::Text)
        };
        expect![[r#"
            error: expected a number as `system` of one.json, but it is etcd
        "#]]
        .assert_eq(&refusal("system"));
        expect![[r#"
            error: expected `open_runs` in every report, but one.json lacks it
            hint: a bench takes --label KEY=VALUE for what it cannot know
        "#]]
        .assert_eq(&refusal("open_runs"));
    }

    #[test]
    fn a_label_with_the_name_of_a_field_is_refused() {
        let saved = saved("one.json", 8, &json!({"clients": "7"}));
        let refused = saved
            .point("clients", "workload")
            .expect_err("there are two");
        expect![[r#"
            error: expected `clients` once in every report, but in one.json it is a field and a label
            hint: measure again with another name for the label
        "#]]
        .assert_eq(&refused.render(Format::Text));
    }

    #[test]
    fn a_report_without_latencies_is_not_drawn_as_if_it_were_the_fastest() {
        let mut saved = saved("one.json", 8, &json!({}));
        assert_eq!(saved.expect_latencies(), Ok(()));
        saved.report.latency.count = 0;
        let refused = saved.expect_latencies().expect_err("there are none");
        expect![[r#"
            error: expected latencies in every report, but one.json does not have any
            hint: no operation succeeded during that measurement: leave it out
        "#]]
        .assert_eq(&refused.render(Format::Text));
    }
}
