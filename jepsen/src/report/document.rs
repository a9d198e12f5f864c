//! The generated part of docs/reliability.md.

use super::Report;
use crate::history::Outcome;
use std::fmt::Write;

const BEGIN: &str = "<!-- jepsen: begin -->";
const END: &str = "<!-- jepsen: end -->";

/// Replaces the generated part of a document by a table of these reports; a document without one gets
/// it at its end.
#[must_use]
pub fn rewrite(document: &str, reports: &[Report]) -> String {
    let (before, after) = match (document.split_once(BEGIN), document.split_once(END)) {
        (Some((before, _)), Some((_, after))) => (before.to_owned(), after),
        _ => (format!("{}\n\n", document.trim_end()), "\n"),
    };
    format!("{before}{BEGIN}\n\n{}\n{END}{after}", table(reports))
}

fn table(reports: &[Report]) -> String {
    let mut text = String::from(
        "| nemesis | seed | seconds | ok | fail | unknown | faults | slowest recovery | longest \
         silence | violations |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for report in reports {
        let Report {
            nemesis,
            seed,
            seconds,
            faults,
            silence_ms_max,
            ..
        } = report;
        let [ok, fail, unknown] =
            [Outcome::Ok, Outcome::Fail, Outcome::Unknown].map(|outcome| report.count(outcome));
        let slowest_ms = report.recoveries_ms.iter().max().copied().unwrap_or(0);
        let violations = report.violations.len();
        writeln!(
            text,
            "| {nemesis} | {seed} | {seconds} | {ok} | {fail} | {unknown} | {faults} | \
             {slowest_ms} ms | {silence_ms_max} ms | {violations} |"
        )
        .expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_generated_part_is_replaced() {
        let document = format!("# Head\n\n{BEGIN}\n\nold\n\n{END}\n\nTail\n");
        let written = rewrite(&document, &[]);
        assert!(written.starts_with("# Head\n\n<!-- jepsen: begin -->\n\n| nemesis"));
        assert!(written.ends_with("<!-- jepsen: end -->\n\nTail\n"));
        assert!(!written.contains("old"));
        assert_eq!(rewrite(&written, &[]), written);
        assert!(rewrite("# Head\n", &[]).starts_with("# Head\n\n<!-- jepsen"));
    }
}
