//! Runs with more and more active steps.

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::report::Report;
use super::section::Section;
use super::show::{fine, latencies, of_nodes, whole};
use crate::table::Table;

/// One run with 100, 300 and 1,000 active steps, which is the maximum (W55).
const LARGE: [Shape; 3] = [Shape::new(9, 10), Shape::new(13, 22), Shape::new(27, 36)];

/// A run without branches, with 10 iterations at a time. As many of these run as have the same number of actions.
const SMALL: Shape = Shape {
    branches: None,
    concurrency: 10,
};

/// The number of items of a loop, divided by its concurrency.
const ITEMS_PER_SLOT: u16 = 3;

/// How many steps an iteration has, one after the other.
const STEPS: u16 = 2;

/// How many tasks the worker runs at the same time: at least as many as there are concurrent actions.
const SLOTS: u16 = 1_000;

/// The loops of a run.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Branches with a loop each, or one loop without branches.
    branches: Option<u16>,
    /// Iterations of each loop at the same time.
    concurrency: u16,
}

/// What was measured with runs of a shape.
struct Measurement {
    shape: Shape,
    /// The number of concurrent runs.
    runs: u16,
    report: Report,
}

impl Shape {
    const fn new(branches: u16, concurrency: u16) -> Self {
        Self {
            branches: Some(branches),
            concurrency,
        }
    }

    /// The active steps of a run, as they count against its maximum.
    fn active_steps(self) -> u16 {
        let of_loop = 1 + self.concurrency;
        self.branches
            .map_or(of_loop, |branches| 1 + branches * of_loop)
    }

    /// The actions that a run executes at the same time.
    fn concurrent_actions(self) -> u16 {
        self.branches.unwrap_or(1) * self.concurrency
    }

    /// All actions of a run, one per step.
    fn steps_count(self) -> u16 {
        self.concurrent_actions() * ITEMS_PER_SLOT * STEPS
    }

    /// Runs of this shape, this many at a time.
    fn load(self, runs: u16) -> Load {
        let load = Load::foreach()
            .with("--items", self.concurrency * ITEMS_PER_SLOT)
            .with("--concurrency", self.concurrency)
            .with("--steps", STEPS)
            .with("--slots", SLOTS)
            .with("--clients", runs)
            .labeled(
                "active_steps",
                u32::from(self.active_steps()) * u32::from(runs),
            );
        match self.branches {
            Some(branches) => load.with("--branches", branches),
            None => load,
        }
    }
}

/// Measures one run with more and more active steps, and many small runs with as many actions at a time.
///
/// # Errors
/// If a cluster does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut measured = Vec::new();
    for shape in LARGE {
        let small_runs = shape.concurrent_actions() / SMALL.concurrent_actions();
        for (shape, runs) in [(shape, 1), (SMALL, small_runs)] {
            let report = bench.measure_alone(&shape.load(runs))?;
            measured.push(Measurement {
                shape,
                runs,
                report,
            });
        }
    }
    let title = [
        "--x",
        "active_steps",
        "--title",
        "By the active steps of one run",
    ];
    let alone = measured.iter().filter(|measured| measured.runs == 1);
    let drawn = bench.plot("active", &title, alone.map(|measured| &measured.report))?;
    let section = Section::default()
        .paragraph(
            "`flo bench foreach`: each parallel branch of a run loops over items, and each iteration executes two \
             actions in sequence. One client starts the next run when the previous one has ended. A run can have at \
             most 1,000 active steps. For comparison, each row is followed by small runs, one per client, with about \
             the same number of concurrent actions. The time per step is the p50 of a run, divided by the number of \
             steps of all concurrent runs. The cost of a step does not depend on the number of active steps of its \
             run if the time and the bytes written per step do not grow from row to row, and if a transition takes no \
             longer than in the small runs. Transitions slow down as concurrent actions increase, because actions \
             wait for each other.",
        )
        .table(&table(&measured));
    Ok(section.figure(
        "Throughput and latency by the active steps of one run",
        drawn,
    ))
}

fn table(measured: &[Measurement]) -> Table {
    let mut table = Table::new(&[
        "active steps of a run",
        "concurrent runs",
        "concurrent actions",
        "runs",
        "p50 of a run, ms",
        "p50 per step, µs",
        "transition p50",
        "transition p99",
        "written/step of each node, leader first",
        "errors",
    ]);
    for Measurement {
        shape,
        runs,
        report,
    } in measured
    {
        let [.., transition_p50, transition_p99] = latencies(report);
        let steps = f64::from(shape.steps_count());
        let per_step = |bytes: f64| whole(bytes / steps);
        let run_micros = report.latency.p50_ms * 1_000.0;
        table.add([
            shape.active_steps().to_string(),
            runs.to_string(),
            (u32::from(shape.concurrent_actions()) * u32::from(*runs)).to_string(),
            report.completed.to_string(),
            fine(report.latency.p50_ms),
            whole(run_micros / (steps * f64::from(*runs))),
            transition_p50,
            transition_p99,
            of_nodes(report, |node| node.written_bytes_per_run, per_step),
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
    fn each_load_is_a_row_with_the_costs_of_a_step() {
        let [hundred, _, thousand] = LARGE;
        let measured = [(hundred, 1), (SMALL, 9), (thousand, 1)].map(|(shape, runs)| Measurement {
            shape,
            runs,
            report: report("foreach", 10.0, 50.0),
        });
        expect![[r#"
            | active steps of a run | concurrent runs | concurrent actions | runs | p50 of a run, ms | p50 per step, µs | transition p50 | transition p99 | written/step of each node, leader first | errors |
            |----------------------:|----------------:|-------------------:|-----:|-----------------:|-----------------:|---------------:|---------------:|----------------------------------------:|-------:|
            |                   100 |               1 |                 90 | 4000 |            50.00 |               93 |          12.50 |          25.00 |                                   6 / 6 |      0 |
            |                    11 |               9 |                 90 | 4000 |            50.00 |               93 |          12.50 |          25.00 |                                 55 / 55 |      0 |
            |                  1000 |               1 |                972 | 4000 |            50.00 |                9 |          12.50 |          25.00 |                                   1 / 1 |      0 |"#]].assert_eq(&table(&measured).markdown().join("\n"));
    }

    #[test]
    fn the_largest_run_has_the_maximum_of_active_steps() {
        assert_eq!(LARGE.map(Shape::active_steps), [100, 300, 1_000]);
        assert!(
            LARGE
                .iter()
                .all(|shape| shape.concurrent_actions() <= SLOTS)
        );
        assert_eq!(
            LARGE[2].load(1).arguments().join(" "),
            "bench foreach --items 108 --concurrency 36 --steps 2 --slots 1000 --clients 1 --branches 27 \
             --label active_steps=1000"
        );
    }
}
