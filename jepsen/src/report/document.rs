//! The generated parts of docs/reliability.md.

use super::Report;
use crate::history::Outcome;
use crate::planted::{Found, Planted};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A part of the document that a run writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The figures of a storm.
    Figures,
    /// The planted bugs that were found.
    Planted,
    /// The results of the drills.
    Drills,
    /// What attacks did.
    Attacks,
}

impl Part {
    fn marks(self) -> [&'static str; 2] {
        match self {
            Self::Figures => ["<!-- jepsen: begin -->", "<!-- jepsen: end -->"],
            Self::Planted => ["<!-- planted: begin -->", "<!-- planted: end -->"],
            Self::Attacks => ["<!-- attacks: begin -->", "<!-- attacks: end -->"],
            Self::Drills => ["<!-- drills: begin -->", "<!-- drills: end -->"],
        }
    }
}

/// Replaces a generated part of a document; appends it if it is missing.
#[must_use]
pub fn rewrite(document: &str, part: Part, table: &str) -> String {
    let [begin, end] = part.marks();
    let (before, after) = match (document.split_once(begin), document.split_once(end)) {
        (Some((before, _)), Some((_, after))) => (before.to_owned(), after),
        _ => (format!("{}\n\n", document.trim_end()), "\n"),
    };
    format!("{before}{begin}\n\n{table}\n{end}{after}")
}

/// The figures of each storm, the totals, and the workloads that made the calls.
#[must_use]
pub fn figures(reports: &[Report]) -> String {
    let mut text = String::from(
        "| nemesis | seed | seconds | ok | fail | unknown | faults | slowest recovery | longest \
         outage | violations |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for report in reports {
        push(
            &mut text,
            &report.nemesis,
            &report.seed.to_string(),
            &[report],
        );
    }
    let all: Vec<&Report> = reports.iter().collect();
    push(&mut text, "all", "", &all);
    let workloads = reports.iter().flat_map(|report| report.operations.keys());
    let workloads: BTreeSet<String> = workloads.map(|name| format!("`{name}`")).collect();
    let workloads: Vec<String> = workloads.into_iter().collect();
    writeln!(text, "\nWorkloads: {}.", workloads.join(", ")).expect("a string takes any text");
    text
}

/// A row for one report, or for several combined.
fn push(text: &mut String, name: &str, seed: &str, reports: &[&Report]) {
    let sum = |part: &dyn Fn(&Report) -> u64| reports.iter().map(|one| part(one)).sum::<u64>();
    let [ok, fail, unknown] = [Outcome::Ok, Outcome::Fail, Outcome::Unknown]
        .map(|outcome| sum(&|report| report.count(outcome)));
    let seconds = sum(&|report| report.seconds);
    let faults = sum(&|report| report.faults as u64);
    let violations = sum(&|report| report.violations.len() as u64);
    let recoveries = reports.iter().flat_map(|report| &report.recoveries_ms);
    let slowest_ms = recoveries.max().copied().unwrap_or(0);
    let outages = reports.iter().map(|report| report.outage_ms_max);
    let outage_ms_max = outages.max().unwrap_or(0);
    writeln!(
        text,
        "| {name} | {seed} | {seconds} | {ok} | {fail} | {unknown} | {faults} | {slowest_ms} ms | \
         {outage_ms_max} ms | {violations} |"
    )
    .expect("a string takes any text");
}

/// The bugs that were found, and how soon.
#[must_use]
pub fn planted(found: &[Found]) -> String {
    let mut text =
        String::from("| planted bug | workload | nemesis | found after |\n|---|---|---|---|\n");
    for Found { planted, took, .. } in found {
        let Planted {
            bug,
            workload,
            nemesis,
        } = planted;
        let seconds = took.as_secs_f64();
        writeln!(
            text,
            "| `{bug}` | `{workload}` | `{nemesis}` | {seconds:.1} s |"
        )
        .expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_name_the_workloads_of_all_storms() {
        let of = |workload: &str| Report {
            operations: [(workload.to_owned(), [1, 0, 0])].into(),
            ..Report::default()
        };
        let table = figures(&[of("tokens"), of("events"), of("tokens")]);
        assert!(
            table.ends_with("\nWorkloads: `events`, `tokens`.\n"),
            "{table}"
        );
    }

    #[test]
    fn only_the_generated_part_is_replaced() {
        let document = "# Head\n\n<!-- jepsen: begin -->\n\nold\n\n<!-- jepsen: end -->\n\nTail\n";
        let table = figures(&[]);
        let written = rewrite(document, Part::Figures, &table);
        assert!(written.starts_with("# Head\n\n<!-- jepsen: begin -->\n\n| nemesis"));
        assert!(written.ends_with("<!-- jepsen: end -->\n\nTail\n"));
        assert!(!written.contains("old"));
        assert_eq!(rewrite(&written, Part::Figures, &table), written);
        let both = rewrite(&written, Part::Planted, &planted(&[]));
        assert!(both.starts_with(&written), "{both}");
        assert!(both.contains("<!-- planted: begin -->\n\n| planted bug"));
    }
}
