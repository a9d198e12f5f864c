//! The results of drills, as a table.

use crate::history::Outcome;
use crate::report::Report;

const HEADINGS: [&str; 7] = [
    "drill",
    "calls",
    "failed",
    "unknown",
    "lost",
    "outage",
    "what was done",
];

/// The results of drills: calls tried, calls that failed in spite of retries, calls with an unknown outcome,
/// what the checkers found missing or duplicated, and the longest time without a response.
#[must_use]
pub fn table(reports: &[Report]) -> String {
    let rows: Vec<[String; 7]> = reports.iter().map(row).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = line(&HEADINGS.map(str::to_owned), &widths);
    for row in &rows {
        text.push_str(&line(row, &widths));
    }
    text
}

fn row(report: &Report) -> [String; 7] {
    let counts =
        [Outcome::Ok, Outcome::Fail, Outcome::Unknown].map(|outcome| report.count(outcome));
    [
        report.nemesis.clone(),
        counts.iter().sum::<u64>().to_string(),
        counts[1].to_string(),
        counts[2].to_string(),
        report.violations.len().to_string(),
        format!("{} ms", report.outage_ms_max),
        report.done.join("; "),
    ]
}

fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let padded = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"));
    let cells: Vec<String> = padded.collect();
    format!("{}\n", cells.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Violation;

    #[test]
    fn a_table_counts_what_was_tried_failed_and_lost() {
        let report = Report {
            nemesis: "transfer-leader".to_owned(),
            operations: [
                ("starts".to_owned(), [10, 1, 0]),
                ("signals".to_owned(), [5, 0, 2]),
            ]
            .into(),
            outage_ms_max: 7,
            violations: vec![Violation::new("a run is lost")],
            done: vec!["nodes [1] led".to_owned()],
            ..Report::default()
        };
        let expected = "\
drill            calls  failed  unknown  lost  outage  what was done
transfer-leader  18     1       2        1     7 ms    nodes [1] led
";
        assert_eq!(table(&[report]), expected);
    }
}
