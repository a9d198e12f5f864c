//! A cluster that refuses reports for now, or breaks streams off.

use super::{LONG, builder, completion, done, run};
use crate::fake::{FakeNode, refusal};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Code;

/// How long the cluster asks to wait.
const DELAY: Duration = Duration::from_millis(100);

#[tokio::test]
async fn reports_that_are_refused_for_now_come_again_on_the_same_stream_after_the_delay() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (mut sequence, report) = completion(&mut stream).await;
    for reason in ["overloaded", "disk_pressure"] {
        let refused = Instant::now();
        stream.postpone(sequence, reason, DELAY).await;
        let (again, repeated) = completion(&mut stream).await;
        assert_eq!(repeated, report);
        assert!(refused.elapsed() >= DELAY);
        sequence = again;
    }
    stream.accept(sequence).await;
    stream.assign("t2", LONG).await;
    assert_eq!(completion(&mut stream).await.1.task_token, "t2");
    assert!(node.is_idle(), "the worker keeps its stream");
}

#[tokio::test]
async fn a_node_that_only_greets_is_called_less_and_less_often() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    let mut stream = node.employ().await;
    for _ in 0..4 {
        stream.end(refusal(Code::Unavailable, "poll_lost")).await;
        stream = node.worker().await.accept().await.0;
    }
    let broken = Instant::now();
    stream.end(refusal(Code::Unavailable, "poll_lost")).await;
    node.worker().await;
    assert!(broken.elapsed() >= Duration::from_millis(200));
}
