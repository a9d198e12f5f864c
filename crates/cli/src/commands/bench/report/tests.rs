//! Reports, from the measurement to the output.

use super::*;
use crate::commands::bench::usage::{NodeSnapshot, Snapshot};
use expect_test::{Expect, expect};
use flotilla_client::v1::NodeUsage;
use std::time::{Duration, Instant};

/// The counters of a leader after this many seconds.
fn usage(seconds: u64) -> NodeUsage {
    NodeUsage {
        node_id: 1,
        uptime_ms: 1_000 * (60 + seconds),
        cpu_ms: Some(5_000 + 700 * seconds),
        resident_bytes: Some(100 << 20),
        written_bytes: Some(1_000_000 * seconds),
        log_fsync_count: 300 * seconds,
        log_written_bytes: 400_000 * seconds,
        commands_proposed: 8_000 * seconds,
        entries_proposed: 250 * seconds,
        entries_applied: 251 * seconds,
        data_bytes: Some(42 << 20),
    }
}

fn node(node_id: u64, usage: Option<NodeUsage>) -> NodeSnapshot {
    NodeSnapshot {
        node_id,
        address: format!("127.0.0.1:90{node_id}0"),
        usage,
    }
}

/// Two nodes, of which the second does not answer.
fn look(seconds: u64, began: Instant) -> Look {
    Look {
        nodes: Snapshot {
            leader: Some(1),
            nodes: vec![node(1, Some(usage(seconds))), node(2, None)],
        },
        own_cpu_ms: 100 + 250 * i64::try_from(seconds).expect("a few seconds"),
        at: began + Duration::from_secs(seconds),
        at_ms: 1_772_357_400_000 + 1_000 * seconds,
    }
}

/// Four seconds with 1,000 runs each.
fn measured() -> Measured {
    let mut measured = Measured::nothing(&["transition"]);
    for number in 0..4_000_u64 {
        let latency = Duration::from_micros(1_000 + number);
        measured.add(latency, Duration::from_millis(number));
        measured.add_stage(0, latency / 4);
    }
    measured.elapsed = Duration::from_millis(4_001);
    measured
}

fn report(measured: &Measured) -> Report {
    let began = Instant::now();
    report_between(&[look(0, began), look(4, began)], measured)
}

fn report_between(looks: &[Look; 2], measured: &Measured) -> Report {
    let conditions = Conditions {
        steps_per_run: Some(3),
        labels: BTreeMap::from([("open_runs".to_owned(), "1000".to_owned())]),
        ..Conditions::new("steps", "runs", "run")
    };
    let flags = LoadFlags::of_count(4_000, 64, 1);
    Report::new(&flags, conditions, measured, looks)
}

fn check(report: &Report, expected: &Expect) {
    expected.assert_eq(&report.text());
}

#[test]
fn a_person_reads_the_rate_the_latencies_and_what_it_cost() {
    check(
        &report(&measured()),
        &expect![[r#"
        steps: 999.75 runs/s, 2999.25 steps/s (4000 in 4 s by 64 clients, 0 errors)

        LATENCY, MS  COUNT  P50   P95  P99   P99.9  MAX
        run          4000   3     4.8  4.96  5      5
        transition   4000   0.75  1.2  1.24  1.25   1.25

        NODE  ROLE            CPU   MEMORY     WRITTEN/RUN  LOG/RUN  FSYNCS/S  APPLIED/S  DISK
        1     leader          70 %  100.0 MiB  1000 B       400 B    300       251        42.0 MiB
        2     did not answer  -     -          -            -        -         -          -

        32 commands per entry, 250 entries/s, 300 fsyncs/s by the leader; the bench itself took 25 % of a core"#]],
    );
}

#[test]
fn a_program_reads_the_published_fields_and_what_it_reads_is_the_report() {
    let mut report = report(&measured());
    let curve = |latency: &Latency| {
        let ascends = |pair: &[(f64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
        latency.quantiles.windows(2).all(ascends)
    };
    assert!(curve(&report.latency) && report.latency.quantiles.len() > 20);
    report.latency.quantiles.truncate(2);
    report.stages[0].latency.quantiles.clear();
    report.flo_version = Some("1.2.3".to_owned());
    let text = serde_json::to_string(&report).expect("printable");
    expect![[r#"{"workload":"steps","labels":{"open_runs":"1000"},"flo_version":"1.2.3","started_at_ms":1772357400000,"unit":"runs","clients":64,"connections":1,"rate":null,"payload_bytes":null,"steps_per_run":3,"open_runs":null,"warm_up_seconds":0,"seconds":4.0,"interrupted":false,"completed":4000,"errors":0,"error":null,"not_started":0,"runs_per_s":999.75,"steps_per_s":2999.25,"latency_of":"run","count":4000,"p50_ms":3.0,"p95_ms":4.8,"p99_ms":4.96,"p999_ms":5.0,"max_ms":5.0,"quantiles":[[0.0,1.0],[0.125,1.5]],"stages":[{"name":"transition","count":4000,"p50_ms":0.75,"p95_ms":1.2,"p99_ms":1.24,"p999_ms":1.25,"max_ms":1.25,"quantiles":[]}],"commands_per_entry":32.0,"entries_per_s":250.0,"fsyncs_per_s":300.0,"previous_leader_id":null,"bench_cpu_percent":25.0,"nodes":[{"node_id":1,"address":"127.0.0.1:9010","leader":true,"responded":true,"cpu_percent":70.0,"resident_bytes":104857600,"written_bytes_per_run":1000.0,"log_bytes_per_run":400.0,"fsyncs_per_s":300.0,"entries_applied_per_s":251.0,"data_bytes":44040192},{"node_id":2,"address":"127.0.0.1:9020","leader":false,"responded":false,"cpu_percent":null,"resident_bytes":null,"written_bytes_per_run":null,"log_bytes_per_run":null,"fsyncs_per_s":null,"entries_applied_per_s":null,"data_bytes":null}],"per_second":[1000,1000,1000,1000]}"#]].assert_eq(&text);
    let read: Report = serde_json::from_str(&text).expect("its own form");
    assert_eq!(read.text(), report.text());
}

#[test]
fn errors_and_a_rate_that_was_not_kept_are_reported() {
    let mut measured = measured();
    measured.errors = 3;
    measured.not_started = 17;
    let mut report = report(&measured);
    report.error = Some("expected a leader, but no node leads".to_owned());
    let text = report.text();
    let end = text
        .find("\n\nfailed operations")
        .expect("the error is reported");
    expect![[r#"


        failed operations are not among the latencies above; the first error: expected a leader, but no node leads

        the rate was not kept: 17 operations were due but had not begun at the end, and the latencies above do not include them; either the cluster cannot keep this rate, or --clients 64 is too low"#]].assert_eq(&text[end..]);
    assert!(text.contains("3 errors"), "{text}");
}

#[test]
fn without_latencies_there_are_dashes_and_no_zeros() {
    let mut measured = Measured::nothing(&[]);
    measured.completed = 40;
    measured.not_started = 9_000;
    let report = report(&measured);
    let text = report.text();
    assert!(
        text.contains("\nrun          0      -    -    -    -      -\n"),
        "{text}"
    );
    let printed = serde_json::to_value(&report).expect("printable");
    assert!(
        printed["p50_ms"].is_null() && printed["max_ms"].is_null(),
        "{printed}"
    );
}

#[test]
fn when_another_node_leads_at_the_end_there_are_no_rates_of_the_leader() {
    let began = Instant::now();
    let [mut before, after] = [look(0, began), look(4, began)];
    before.nodes.leader = Some(2);
    let text = report_between(&[before, after], &measured()).text();
    assert!(
        text.contains("- entries/s, - fsyncs/s by the leader"),
        "{text}"
    );
    assert!(
        text.contains("node 2 led at the start and another one at the end"),
        "{text}"
    );
}

#[test]
fn a_report_says_whether_a_load_was_stopped_or_had_nothing_to_do() {
    let mut stopped = measured();
    stopped.is_stopped = true;
    let text = report(&stopped).text();
    assert!(text.contains("0 errors, stopped early)"), "{text}");

    let mut nothing = report(&Measured::nothing(&[]));
    nothing.workload = "parked".to_owned();
    nothing.open_runs = Some(200);
    let text = nothing.text();
    assert_eq!(
        text,
        "parked: 200 are already open, so there was nothing to do"
    );
}

#[test]
fn a_node_that_was_started_meanwhile_has_no_rates() {
    let began = Instant::now();
    let [before, mut after] = [look(70, began), look(74, began)];
    if let Some(usage) = &mut after.nodes.nodes[0].usage {
        usage.uptime_ms = 2_000;
    }
    let nodes = Node::all(&before.nodes, &after.nodes, 10);
    assert!(nodes[0].responded && nodes[0].cpu_percent.is_none());
    assert_eq!(nodes[0].resident_bytes, Some(100 << 20));
}
