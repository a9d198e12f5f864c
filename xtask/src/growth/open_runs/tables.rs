//! What is told of more and more runs that wait.

use super::super::report::Report;
use super::super::show::{UNKNOWN, fine, latencies, mib, of_nodes, seconds, whole};
use super::Stage;
use crate::table::Table;

/// Throughput and latency, each also as how many times that of the first stage.
pub(super) fn loads(stages: &[Stage]) -> Table {
    let mut table = Table::new(&[
        "open runs",
        "workload",
        "a second",
        "of first",
        "p50",
        "p99",
        "p99 of first",
        "transition p50",
        "transition p99",
        "errors",
    ]);
    let Some(first) = stages.first() else {
        return table;
    };
    let mut add = |stage: &Stage, report: &Report, first: &Report| {
        let [p50, p99, transition_p50, transition_p99] = latencies(report);
        table.add([
            stage.open_runs.to_string(),
            report.workload.clone(),
            whole(report.rate),
            fine(report.rate / first.rate),
            p50,
            p99,
            fine(report.latency.p99_ms / first.latency.p99_ms),
            transition_p50,
            transition_p99,
            report.errors.to_string(),
        ]);
    };
    for stage in stages {
        add(stage, &stage.steps, &first.steps);
    }
    for stage in stages {
        add(stage, &stage.start, &first.start);
    }
    table
}

/// What the state takes, and what is done with it as a whole.
pub(super) fn state(stages: &[Stage]) -> Table {
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
    let mut ended = 0;
    for stage in stages {
        let beside = &stage.beside_snapshots;
        ended += stage.steps.completed + stage.start.completed;
        let transition = beside.transition.map(|latency| fine(latency.p99_ms));
        table.add([
            stage.open_runs.to_string(),
            ended.to_string(),
            of_nodes(&stage.start, |node| node.resident_bytes, mib),
            of_nodes(&stage.start, |node| node.data_bytes, mib),
            seconds(stage.restart),
            seconds(stage.snapshot.took),
            mib(stage.snapshot.bytes),
            stage.snapshots.to_string(),
            whole(beside.rate),
            fine(beside.latency.p99_ms),
            transition.unwrap_or_else(|| UNKNOWN.to_owned()),
        ]);
        ended += beside.completed;
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::super::super::report::tests::report;
    use super::super::super::snapshot::Snapshot;
    use super::*;

    fn stages() -> [Stage; 2] {
        [(1_000, 1_200.0), (100_000, 900.0)].map(|(open_runs, rate)| Stage {
            open_runs,
            steps: report("steps", rate, 60_000.0 / rate),
            start: report("start", 9.0 * rate, 6.0),
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
    fn each_stage_is_held_against_the_first() {
        expect![[r#"
            | open runs | workload | a second | of first |   p50 |    p99 | p99 of first | transition p50 | transition p99 | errors |
            |----------:|----------|---------:|---------:|------:|-------:|-------------:|---------------:|---------------:|-------:|
            |      1000 | steps    |     1200 |     1.00 | 50.00 | 100.00 |         1.00 |          12.50 |          25.00 |      0 |
            |    100000 | steps    |      900 |     0.75 | 66.67 | 133.33 |         1.33 |          12.50 |          25.00 |      0 |
            |      1000 | start    |    10800 |     1.00 |  6.00 |  12.00 |         1.00 |              - |              - |      0 |
            |    100000 | start    |     8100 |     0.75 |  6.00 |  12.00 |         1.00 |              - |              - |      0 |"#]].assert_eq(&loads(&stages()).markdown().join("\n"));
    }

    #[test]
    fn each_stage_says_what_its_state_takes() {
        expect![[r#"
            | open runs | ended runs, at least |   memory, MiB | data directory, MiB | restart, s | snapshot, s | snapshot, MiB | snapshots under load | runs/s meanwhile |    p99 | transition p99 |
            |----------:|---------------------:|--------------:|--------------------:|-----------:|------------:|--------------:|---------------------:|-----------------:|-------:|---------------:|
            |      1000 |                 8000 | 102.0 / 101.0 |         50.0 / 50.0 |       0.81 |        0.06 |          48.0 |                   31 |              600 | 240.00 |          25.00 |
            |    100000 |                20000 | 102.0 / 101.0 |         50.0 / 50.0 |       0.81 |        0.06 |          48.0 |                   31 |              450 | 240.00 |          25.00 |"#]].assert_eq(&state(&stages()).markdown().join("\n"));
    }
}
