//! Draws operations and faults over time.

use crate::history::{History, Operation, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: u64 = 1_600;
const LEFT: u64 = 150;
const ROW: u64 = 12;
const TOP: u64 = 30;

/// Draws a history as SVG: a row for each client, a bar for each operation, a shade for each fault.
#[must_use]
pub fn draw(history: &History) -> String {
    let mut rows: BTreeMap<(&str, u64), Vec<&Operation>> = BTreeMap::new();
    for operation in &history.operations {
        let client = (operation.workload.as_str(), operation.process);
        rows.entry(client).or_default().push(operation);
    }
    let ends = history.operations.iter().map(|one| one.returned_us);
    let ends = ends.chain(history.faults.iter().map(|fault| fault.ended_us));
    let end_us = ends.max().unwrap_or(1).max(1);
    let x = |at_us: u64| LEFT + at_us * (WIDTH - LEFT) / end_us;
    let height = TOP + ROW * u64::try_from(rows.len()).unwrap_or(0) + ROW;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"9\">\n"
    );
    for fault in &history.faults {
        let (from, width) = (
            x(fault.started_us),
            bar(x, fault.started_us, fault.ended_us),
        );
        let what = escape(&format!("{}: {}", fault.nemesis, fault.what));
        push(
            &mut svg,
            format!(
                "<rect x=\"{from}\" y=\"0\" width=\"{width}\" height=\"{height}\" fill=\"#fde0dc\">\
             <title>{what}</title></rect>"
            ),
        );
    }
    for second in 0..=end_us / 1_000_000 {
        if second % 5 == 0 {
            let at = x(second * 1_000_000);
            push(
                &mut svg,
                format!("<text x=\"{at}\" y=\"12\">{second} s</text>"),
            );
        }
    }
    for ((client, operations), y) in rows.iter().zip((TOP..).step_by(12)) {
        let (workload, process) = client;
        let (name, baseline) = (escape(workload), y + 9);
        push(
            &mut svg,
            format!("<text x=\"4\" y=\"{baseline}\">{name} {process}</text>"),
        );
        for operation in operations {
            push(&mut svg, mark(operation, y, x));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn mark(operation: &Operation, y: u64, x: impl Fn(u64) -> u64) -> String {
    let (from_us, until_us) = (operation.invoked_us, operation.returned_us);
    let (from, width) = (x(from_us), bar(x, from_us, until_us));
    let color = match operation.outcome {
        Outcome::Ok => "#5b9f5b",
        Outcome::Fail => "#888888",
        Outcome::Unknown => "#d98e04",
    };
    let Operation {
        name,
        input,
        output,
        ..
    } = operation;
    let what = escape(&format!(
        "{name} {input} → {output} at {from_us}–{until_us} µs"
    ));
    format!(
        "<rect x=\"{from}\" y=\"{y}\" width=\"{width}\" height=\"9\" fill=\"{color}\">\
         <title>{what}</title></rect>"
    )
}

fn bar(x: impl Fn(u64) -> u64, from_us: u64, until_us: u64) -> u64 {
    x(until_us).saturating_sub(x(from_us)).max(1)
}

fn push(svg: &mut String, element: String) {
    writeln!(svg, "{element}").expect("a string takes any text");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Fault;

    #[test]
    fn operations_and_faults_are_drawn_with_what_they_were() {
        let fault = Fault {
            nemesis: "kill-leader".to_owned(),
            what: "SIGKILL <1>".to_owned(),
            started_us: 10,
            ended_us: 2_000_000,
        };
        let history = History {
            operations: vec![Operation::sample("starts", Outcome::Unknown)],
            faults: vec![fault],
            ..History::default()
        };
        let svg = draw(&history);
        assert!(svg.contains("kill-leader: SIGKILL &lt;1&gt;"), "{svg}");
        assert!(svg.contains("#d98e04"), "{svg}");
        assert!(svg.ends_with("</svg>\n"), "{svg}");
    }
}
