//! Larger and larger inputs of steps.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::report::Report;
use super::section::Section;
use super::show::{fine, latencies, of_nodes, size, whole};
use crate::table::Table;

/// How long the input of each step is, in bytes, and by how many clients at a time.
const SIZES: [Size; 3] = [
    Size::new(100, 64),
    Size::new(10 << 10, 64),
    // Few, so that what is in flight stays far below the memory of a node.
    Size::new(500 << 10, 8),
];

/// How many steps a run has.
const STEPS: f64 = 3.0;

#[derive(Clone, Copy)]
struct Size {
    bytes: u32,
    clients: u16,
}

impl Size {
    const fn new(bytes: u32, clients: u16) -> Self {
        Self { bytes, clients }
    }

    /// What all clients together have in flight.
    fn bytes_under_way(self) -> u64 {
        u64::from(self.bytes) * u64::from(self.clients)
    }
}

/// Measures whole runs with larger and larger inputs.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut reports = Vec::new();
    for size in SIZES {
        let load = Load::steps()
            .with("--payload", size.bytes)
            .with("--clients", size.clients);
        reports.push(bench.measure_alone(&load)?);
    }
    let title = [
        "--x",
        "payload_bytes",
        "--title",
        "By the bytes of each input",
    ];
    let drawn = bench.plot("payloads", &title, &reports)?;
    let measured: Vec<(Size, Report)> = SIZES.into_iter().zip(reports).collect();
    let section = Section::default()
        .paragraph(
            "`flo bench steps`: runs of three steps, each step with an input of the given size. Each client has one \
             input in flight. With large inputs there are fewer clients, to limit the total size in flight, so those \
             rows show the throughput of few clients.",
        )
        .table(&table(&measured));
    Ok(section.figure("Throughput and latency by the bytes of each input", drawn))
}

fn table(measured: &[(Size, Report)]) -> Table {
    let mut table = Table::new(&[
        "input",
        "clients",
        "in flight",
        "runs/s",
        "inputs, MiB/s",
        "p50",
        "p99",
        "transition p50",
        "transition p99",
        "written/run of each node, leader first",
        "memory, MiB",
        "errors",
    ]);
    for (size_of_input, report) in measured {
        let bytes = f64::from(size_of_input.bytes) * STEPS * report.rate;
        let [p50, p99, transition_p50, transition_p99] = latencies(report);
        table.add([
            size(size_of_input.bytes.into()),
            size_of_input.clients.to_string(),
            size(size_of_input.bytes_under_way()),
            whole(report.rate),
            fine(bytes / f64::from(1 << 20)),
            p50,
            p99,
            transition_p50,
            transition_p99,
            of_nodes(report, |node| node.written_bytes_per_run, whole),
            of_nodes(report, |node| node.resident_bytes, super::show::mib),
            report.errors.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn each_size_is_a_row_that_says_what_was_under_way() {
        let measured = SIZES.map(|size| (size, report("steps", 1_000.0, 50.0)));
        expect![[r#"
            | input   | clients | in flight | runs/s | inputs, MiB/s |   p50 |    p99 | transition p50 | transition p99 | written/run of each node, leader first |   memory, MiB | errors |
            |---------|--------:|-----------|-------:|--------------:|------:|-------:|---------------:|---------------:|---------------------------------------:|--------------:|-------:|
            | 100 B   |      64 | 6 KiB     |   1000 |          0.29 | 50.00 | 100.00 |          12.50 |          25.00 |                            3312 / 3312 | 102.0 / 101.0 |      0 |
            | 10 KiB  |      64 | 640 KiB   |   1000 |         29.30 | 50.00 | 100.00 |          12.50 |          25.00 |                            3312 / 3312 | 102.0 / 101.0 |      0 |
            | 500 KiB |       8 | 3.9 MiB   |   1000 |       1464.84 | 50.00 | 100.00 |          12.50 |          25.00 |                            3312 / 3312 | 102.0 / 101.0 |      0 |"#]].assert_eq(&table(&measured).markdown().join("\n"));
    }
}
