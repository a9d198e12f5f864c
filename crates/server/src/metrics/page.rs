//! The metrics page: Prometheus's text format, version 0.0.4.

use super::catalogue::Metric;
use super::histogram::{BOUNDS_MICROS, Reading};
use std::fmt::{self, Write};

/// The content type of the page.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const MICROS_PER_SECOND: f64 = 1e6;

/// A page under construction, one metric after the other.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

/// A sample's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// A whole number.
    Whole(u64),
    /// Any other number.
    Real(f64),
}

/// A line of the page, after the metric's name.
struct Sample<'a> {
    /// Continues the name: which part of a histogram it is.
    suffix: &'static str,
    /// The values of the metric's labels.
    values: &'a [&'a str],
    /// The upper bound of a histogram's bucket.
    bound: Option<&'a str>,
    number: Number,
}

impl<'a> Sample<'a> {
    /// A sample of the metric itself.
    fn new(values: &'a [&'a str], number: Number) -> Self {
        Self {
            suffix: "",
            values,
            bound: None,
            number,
        }
    }
}

impl Page {
    /// A metric without labels.
    pub(super) fn one(&mut self, metric: &Metric, number: impl Into<Number>) {
        self.many(metric, [([], number.into())]);
    }

    /// A metric without labels whose value may be unknown.
    pub(super) fn maybe(&mut self, metric: &Metric, number: Option<impl Into<Number>>) {
        self.many(metric, number.map(|number| ([], number.into())));
    }

    /// A metric with one sample per list of label values.
    pub(super) fn many<'a, const N: usize>(
        &mut self,
        metric: &Metric,
        samples: impl IntoIterator<Item = ([&'a str; N], Number)>,
    ) {
        self.head(metric);
        for (values, number) in samples {
            self.sample(metric, &Sample::new(&values, number));
        }
    }

    /// A histogram per list of label values.
    pub(super) fn histograms<'a, const N: usize>(
        &mut self,
        metric: &Metric,
        readings: impl IntoIterator<Item = ([&'a str; N], Reading)>,
    ) {
        self.head(metric);
        for (values, reading) in readings {
            let ends = BOUNDS_MICROS.iter().map(|bound| Some(seconds(*bound)));
            for (end, count) in ends.chain([None]).zip(reading.cumulative) {
                let end = end.map_or_else(|| "+Inf".to_owned(), |end| end.to_string());
                let bucket = Sample {
                    suffix: "_bucket",
                    bound: Some(&end),
                    ..Sample::new(&values, count.into())
                };
                self.sample(metric, &bucket);
            }
            let sum = Number::Real(seconds(reading.sum_micros));
            for (suffix, number) in [("_sum", sum), ("_count", reading.count().into())] {
                let sample = Sample::new(&values, number);
                self.sample(metric, &Sample { suffix, ..sample });
            }
        }
    }

    /// The whole page.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn head(&mut self, metric: &Metric) {
        let Metric {
            name, kind, help, ..
        } = metric;
        let kind = kind.as_str();
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, metric: &Metric, sample: &Sample<'_>) {
        let Sample {
            suffix,
            values,
            bound,
            number,
        } = *sample;
        assert_eq!(values.len(), metric.labels.len(), "{}", metric.name);
        self.write(format_args!("{}{suffix}", metric.name));
        let bounds = bound.map(|bound| ("le", bound));
        let labels = metric.labels.iter().copied().zip(values.iter().copied());
        let mut separator = '{';
        for (label, value) in labels.chain(bounds) {
            self.write(format_args!("{separator}{label}=\"{}\"", Escaped(value)));
            separator = ',';
        }
        let close = if separator == ',' { "}" } else { "" };
        self.write(format_args!("{close} {number}\n"));
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes any text");
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / MICROS_PER_SECOND
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<usize> for Number {
    fn from(number: usize) -> Self {
        Self::Whole(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

impl From<bool> for Number {
    fn from(is_so: bool) -> Self {
        Self::Whole(u64::from(is_so))
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(formatter),
            Self::Real(number) => number.fmt(formatter),
        }
    }
}

/// A label value, escaped for the format.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => formatter.write_str("\\\\")?,
                '"' => formatter.write_str("\\\"")?,
                '\n' => formatter.write_str("\\n")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{GRPC_REQUEST, RAFT_TERM, TASKS_READY};
    use super::super::histogram::Histogram;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_metric_has_its_help_its_type_and_its_samples() {
        let mut page = Page::default();
        page.one(&RAFT_TERM, 7_u64);
        page.many(&TASKS_READY, [(["a\"b\\c\nd", "e"], Number::Real(0.5))]);
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# HELP flotilla_raft_term The newest"));
        assert_eq!(lines[1], "# TYPE flotilla_raft_term gauge");
        assert_eq!(lines[2], "flotilla_raft_term 7");
        let escaped = r#"flotilla_tasks_ready{namespace="a\"b\\c\nd",action="e"} 0.5"#;
        assert_eq!(lines[5], escaped);
    }

    #[test]
    fn a_histogram_is_its_buckets_its_sum_and_its_count() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(1_500));
        let mut page = Page::default();
        page.histograms(&GRPC_REQUEST, [(["m"], histogram.read())]);
        let text = page.into_text();
        for line in [
            r#"flotilla_grpc_request_duration_seconds_bucket{method="m",le="0.001"} 0"#,
            r#"flotilla_grpc_request_duration_seconds_bucket{method="m",le="0.0025"} 1"#,
            r#"flotilla_grpc_request_duration_seconds_bucket{method="m",le="+Inf"} 1"#,
            r#"flotilla_grpc_request_duration_seconds_sum{method="m"} 0.0015"#,
            r#"flotilla_grpc_request_duration_seconds_count{method="m"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
