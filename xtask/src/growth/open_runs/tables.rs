//! The tables for rising numbers of waiting runs.

use super::super::show::{UNKNOWN, fine, latencies, mib, of_nodes, seconds, whole};
use super::Measured;
use super::rounds::Rounds;
use crate::table::Table;

/// Throughput and latency, also relative to the first number of runs.
pub(super) fn loads(measured: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "open runs",
        "workload",
        "per second",
        "of first",
        "in each round",
        "p50",
        "p99",
        "p99 of first",
        "transition p50",
        "transition p99",
        "errors",
    ]);
    let Some(first) = measured.first() else {
        return table;
    };
    let mut add = |open_runs: u64, rounds: &Rounds, first: &Rounds| {
        let report = rounds.median();
        let [p50, p99, transition_p50, transition_p99] = latencies(report);
        let each: Vec<String> = rounds.each_of(first).map(fine).collect();
        table.add([
            open_runs.to_string(),
            report.workload.clone(),
            whole(report.rate),
            fine(rounds.of(first)),
            each.join(" / "),
            p50,
            p99,
            fine(report.latency.p99_ms / first.median().latency.p99_ms),
            transition_p50,
            transition_p99,
            rounds.errors().to_string(),
        ]);
    };
    for each in measured {
        add(each.open_runs, &each.loads.steps, &first.loads.steps);
    }
    for each in measured {
        add(each.open_runs, &each.loads.start, &first.loads.start);
    }
    table
}

/// The size of the state, and the cost of a restart and of snapshots.
pub(super) fn state(measured: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "open runs",
        "ended runs, at least",
        "memory, MiB",
        "data directory, MiB",
        "restart, s",
        "snapshot, s",
        "snapshot, MiB",
        "snapshots under load",
        "runs/s meanwhile",
        "p99",
        "transition p99",
    ]);
    for each in measured {
        let beside = &each.beside_snapshots;
        let ended = each.loads.steps.completed() + each.loads.start.completed();
        let last = each.loads.start.last();
        let transition = beside.transition.map(|latency| fine(latency.p99_ms));
        table.add([
            each.open_runs.to_string(),
            ended.to_string(),
            of_nodes(last, |node| node.resident_bytes, mib),
            of_nodes(last, |node| node.data_bytes, mib),
            seconds(each.restart),
            seconds(each.snapshot.took),
            mib(each.snapshot.bytes),
            each.snapshots.to_string(),
            whole(beside.rate),
            fine(beside.latency.p99_ms),
            transition.unwrap_or_else(|| UNKNOWN.to_owned()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::super::super::report::tests::report;
    use super::super::super::snapshot::Snapshot;
    use super::super::Loads;
    use super::super::rounds::tests::rounds;
    use super::*;

    fn measured() -> [Measured; 2] {
        [(1_000, 1_200.0), (100_000, 900.0)].map(|(open_runs, rate)| Measured {
            open_runs,
            loads: Loads {
                steps: rounds("steps", &[rate, rate + 100.0, rate - 100.0]),
                start: rounds("start", &[9.0 * rate, 8.0 * rate, 10_000.0]),
            },
            restart: Duration::from_millis(812),
            snapshot: Snapshot {
                took: Duration::from_millis(64),
                bytes: 48 << 20,
            },
            beside_snapshots: report("steps", rate / 2.0, 120.0),
            snapshots: 31,
        })
    }

    #[test]
    fn each_number_of_runs_is_held_against_the_first() {
        expect![[r#"
            | open runs | workload | per second | of first |      in each round |  p50 |   p99 | p99 of first | transition p50 | transition p99 | errors |
            |----------:|----------|-----------:|---------:|-------------------:|-----:|------:|-------------:|---------------:|---------------:|-------:|
            |      1000 | steps    |       1200 |     1.00 | 1.00 / 1.00 / 1.00 | 6.00 | 12.00 |         1.00 |          12.50 |          25.00 |      0 |
            |    100000 | steps    |        900 |     0.75 | 0.75 / 0.77 / 0.73 | 6.00 | 12.00 |         1.00 |          12.50 |          25.00 |      0 |
            |      1000 | start    |      10000 |     1.00 | 1.00 / 1.00 / 1.00 | 6.00 | 12.00 |         1.00 |              - |              - |      0 |
            |    100000 | start    |       8100 |     0.81 | 0.75 / 0.75 / 1.00 | 6.00 | 12.00 |         1.00 |              - |              - |      0 |"#]].assert_eq(&loads(&measured()).markdown().join("\n"));
    }

    #[test]
    fn each_number_of_runs_says_what_its_state_takes() {
        expect![[r#"
            | open runs | ended runs, at least |   memory, MiB | data directory, MiB | restart, s | snapshot, s | snapshot, MiB | snapshots under load | runs/s meanwhile |    p99 | transition p99 |
            |----------:|---------------------:|--------------:|--------------------:|-----------:|------------:|--------------:|---------------------:|-----------------:|-------:|---------------:|
            |      1000 |                24000 | 102.0 / 101.0 |         50.0 / 50.0 |       0.81 |        0.06 |          48.0 |                   31 |              600 | 240.00 |          25.00 |
            |    100000 |                24000 | 102.0 / 101.0 |         50.0 / 50.0 |       0.81 |        0.06 |          48.0 |                   31 |              450 | 240.00 |          25.00 |"#]].assert_eq(&state(&measured()).markdown().join("\n"));
    }
}
