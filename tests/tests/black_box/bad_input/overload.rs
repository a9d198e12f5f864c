//! More work than may be queued.

use crate::files::fixture;
use crate::wire;
use flotilla_api::v1;
use flotilla_tests::Cluster;
use futures::future::join_all;
use std::collections::BTreeSet;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Concurrent starts: more bytes than the leader's queue accepts for new work.
const STARTS: usize = 120;
/// The largest input.
const INPUT_BYTES: usize = 1 << 20;
const DEADLINE: Duration = Duration::from_secs(20);

fn start(number: usize, input: &bytes::Bytes) -> v1::StartRunRequest {
    v1::StartRunRequest {
        workflow: "parked".to_owned(),
        input: input.clone(),
        idempotency_key: format!("start-{number}"),
        ..v1::StartRunRequest::default()
    }
}

#[test]
fn a_full_queue_refuses_new_work_and_says_when_to_come_back() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let leader = cluster.leader();
    let followers = cluster.followers();
    // Nothing can be committed, so the queue is sure to fill.
    for &id in &followers {
        cluster.kill(id);
    }
    let endpoint = cluster.node(leader).endpoint();
    let input = bytes::Bytes::from(format!("\"{}\"", "x".repeat(INPUT_BYTES - 2)));
    let answers = wire::runtime().block_on(async {
        let workflows = wire::workflows(&endpoint);
        let call = |number| {
            let mut workflows = workflows.clone();
            let request = wire::within(DEADLINE, start(number, &input));
            async move { workflows.start_run(request).await }
        };
        join_all((0..STARTS).map(call)).await
    });
    let refused: Vec<&Status> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .collect();
    let overloaded: Vec<&&Status> = refused
        .iter()
        .filter(|status| status.code() == Code::ResourceExhausted)
        .collect();
    assert!(
        !overloaded.is_empty(),
        "expected a full queue, but: {refused:?}"
    );
    for status in overloaded {
        assert_eq!(wire::reason(status), "overloaded");
        let retry = status.get_details_retry_info().expect("when to come back");
        assert!(retry.retry_delay > Some(Duration::ZERO), "{retry:?}");
    }

    for &id in &followers {
        cluster.restart(id);
    }
    cluster.await_health();
    // A retry succeeds, and every key is one run.
    let mut run_ids = BTreeSet::new();
    for number in 0..3 {
        let key = format!("start-{number}");
        let line = ["workflow", "start", "parked", "--idempotency-key", &key];
        run_ids.insert(flo.text(&line));
    }
    assert_eq!(run_ids.len(), 3);
    let _ = cluster.agreement();
}
