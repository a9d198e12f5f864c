//! Two of three nodes are down.

use crate::files::fixture;
use crate::wire;
use flotilla_api::v1;
use flotilla_tests::{Cluster, ClusterStatus, Flo, TIMEOUT, wait_until};
use std::time::Duration;
use tonic::Code;

/// The caller's timeout.
const DEADLINE: Duration = Duration::from_secs(4);
/// More lines than a node may log in these seconds.
const LOG_LINES_MAX: usize = 5_000;

#[test]
fn without_a_quorum_writes_are_retryable_and_the_status_is_answered() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let before = flo.text(&["workflow", "start", "parked", "--idempotency-key", "before"]);
    let survivor = cluster.leader();
    for id in cluster.followers() {
        cluster.kill(id);
    }

    let start = ["workflow", "start", "parked", "--idempotency-key", "during"];
    let in_time = [&["--timeout", "4s"], &start[..]].concat();
    let refusal = cluster.flo_at(survivor).refused(&in_time);
    assert_eq!(refusal.exit, 4, "{refusal:?}");

    // The server itself responds before the caller's deadline.
    let request = v1::StartRunRequest {
        workflow: "parked".to_owned(),
        idempotency_key: "during".to_owned(),
        ..v1::StartRunRequest::default()
    };
    let status = wire::runtime().block_on(async {
        let mut workflows = wire::workflows(&cluster.node(survivor).endpoint());
        let reply = workflows.start_run(wire::within(DEADLINE, request)).await;
        reply.expect_err("there is no quorum")
    });
    // A command that cannot be proposed times out in the queue; one that was proposed may still be applied.
    let said = (status.code(), wire::reason(&status));
    let retryable = [
        (Code::Unavailable, "no_leader"),
        (Code::Unavailable, "outcome_unknown"),
        (Code::ResourceExhausted, "overloaded"),
    ];
    let is_retryable = retryable.contains(&(said.0, said.1.as_str()));
    assert!(is_retryable, "{status:?}");

    let output = cluster.node(survivor).output();
    let lines = output.lines().count();
    assert!(lines < LOG_LINES_MAX, "the log is flooded: {lines} lines");
    wait_until("a status without a leader", TIMEOUT, || {
        let status = cluster.node(survivor).status()?;
        match status.leader_id {
            None => Ok(()),
            Some(_) => Err(format!("it says {status:?}")),
        }
    });

    expect_no_healthy_leader(&cluster.flo_at(survivor));

    for id in cluster.ids() {
        if id != survivor {
            cluster.restart(id);
        }
    }
    cluster.await_health();
    let during = flo.text(&start);
    assert_ne!(before, during);
    assert_eq!(flo.text(&start), during, "one key is one run");
    let runs = flo.json(&["workflow", "runs", "--workflow", "parked"]);
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(2), "{runs}");
}

/// Expects the status, as text and as JSON, to show no leader.
fn expect_no_healthy_leader(flo: &Flo) {
    let told = flo.run(&["cluster", "status"]);
    assert_eq!(told.code, 4, "{}", told.show());
    assert!(told.stdout.contains("without a leader"), "{}", told.show());
    let unreachable = told.stdout.matches("unreachable").count();
    assert_eq!(unreachable, 2, "{}", told.show());
    assert!(told.stderr.contains("1 of 3 voters"), "{}", told.show());

    let answer = flo.run(&["-o", "json", "cluster", "status"]);
    let status: ClusterStatus = answer.decode_stdout().expect("a status");
    let mut leaders = status.nodes.iter().filter(|node| node.role == "leader");
    assert!(leaders.all(|node| !node.healthy), "{status:?}");
    answer.refusal().expect(4, "no_leader");
}
