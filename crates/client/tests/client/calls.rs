//! Unary calls: which node is called, what is retried, and which error the caller gets.

use crate::fake::{FakeNode, client, client_of, dead_endpoint, refusal};
use flotilla_api::v1;
use flotilla_client::{ClientOptions, ErrorKind};
use std::collections::HashMap;
use std::time::Duration;
use tokio::join;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

fn start() -> v1::StartRunRequest {
    v1::StartRunRequest {
        workflow: "w".to_owned(),
        ..v1::StartRunRequest::default()
    }
}

fn started(run_id: &str) -> v1::StartRunResponse {
    v1::StartRunResponse {
        run_id: run_id.to_owned(),
        ..v1::StartRunResponse::default()
    }
}

#[tokio::test]
async fn a_request_is_repeated_at_another_node_with_the_same_id() {
    let (mut first, mut second) = (FakeNode::start().await, FakeNode::start().await);
    let client = client(&[&first, &second]);
    let conversation = async {
        let (tried, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        call.refuse(refusal(Code::Unavailable, "outcome_unknown"));
        let (repeated, call) = second.unary::<v1::StartRunRequest>("start_run").await;
        assert_eq!(tried.request_id.len(), 16);
        assert_eq!(repeated, tried);
        assert!(
            call.grpc_timeout().is_some(),
            "the server learns the caller's deadline"
        );
        call.answer(started("wfrun-1"));
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    assert_eq!(reply.expect("the second node answered").run_id, "wfrun-1");
}

#[tokio::test]
async fn a_node_that_is_down_is_passed_over() {
    let mut node = FakeNode::start().await;
    let endpoints = vec![dead_endpoint().await, node.address.clone()];
    let client = client_of(endpoints, Duration::from_secs(20));
    let conversation = async {
        let (_, call) = node.unary::<v1::GetRunRequest>("get_run").await;
        call.answer(v1::Run::default());
    };
    let (reply, ()) = join!(client.get_run(v1::GetRunRequest::default()), conversation);
    reply.expect("the node that is up answered");
}

#[tokio::test]
async fn a_cluster_that_is_down_cannot_be_connected_to() {
    let client = flotilla_client::Client::connect(ClientOptions {
        endpoints: vec![dead_endpoint().await],
        unreachable_timeout: Duration::from_millis(100),
        ..ClientOptions::default()
    })
    .expect("well-formed");
    let error = client
        .start_run(start())
        .await
        .expect_err("no node listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionFailed);
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn a_write_without_an_answer_is_unknown_and_a_read_can_be_retried() {
    // The call waits in the node for a response that the test never sends.
    let node = FakeNode::start().await;
    let client = client_of(vec![node.address.clone()], Duration::from_millis(100));
    let error = client.start_run(start()).await.expect_err("no answer came");
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Unknown, "timeout")
    );

    let read = client.get_run(v1::GetRunRequest::default()).await;
    assert_eq!(
        read.expect_err("no answer came").kind(),
        ErrorKind::Retryable
    );
}

#[tokio::test]
async fn the_leader_that_a_reply_names_is_asked_next() {
    let (mut follower, mut leader) = (FakeNode::start().await, FakeNode::start().await);
    // The client does not know the leader's endpoint from the start.
    let client = client(&[&follower]);
    let conversation = async {
        let (_, call) = follower.unary::<v1::StartRunRequest>("start_run").await;
        call.answer_and_name_leader(started("wfrun-1"), &leader);
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    reply.expect("the follower answered");

    let conversation = async {
        let (_, call) = leader.unary::<v1::StartRunRequest>("start_run").await;
        call.answer(started("wfrun-2"));
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    assert_eq!(reply.expect("the leader answered").run_id, "wfrun-2");
    assert!(follower.is_idle());
}

#[tokio::test]
async fn the_leader_of_one_namespace_is_not_that_of_another() {
    let (mut first, mut second) = (FakeNode::start().await, FakeNode::start().await);
    let shop = client(&[&first]).with_namespace("shop");
    let bank = shop.with_namespace("bank");
    let conversation = async {
        let (_, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        call.answer_and_name_leader(started("wfrun-1"), &first);
        // `bank` is not known yet: the node that was learned last is called.
        let (_, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        call.answer_and_name_leader(started("wfrun-2"), &second);
    };
    let calls = async {
        shop.start_run(start()).await.expect("it leads `shop`");
        bank.start_run(start()).await.expect("it forwards the call");
    };
    join!(calls, conversation);

    let calls = async {
        let (of_shop, of_bank) = join!(shop.start_run(start()), bank.start_run(start()));
        assert_eq!(of_shop.expect("it leads `shop`").run_id, "wfrun-3");
        assert_eq!(of_bank.expect("it leads `bank`").run_id, "wfrun-4");
    };
    let conversation = async {
        let (_, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        call.answer(started("wfrun-3"));
        let (_, call) = second.unary::<v1::StartRunRequest>("start_run").await;
        call.answer(started("wfrun-4"));
    };
    join!(calls, conversation);
}

#[tokio::test]
async fn a_rejection_is_passed_on_and_not_repeated() {
    let (mut first, second) = (FakeNode::start().await, FakeNode::start().await);
    let client = client(&[&first, &second]);
    let conversation = async {
        let (_, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        call.refuse(refusal(Code::NotFound, "workflow_not_found"));
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    let error = reply.expect_err("there is no such workflow");
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::NotFound, "workflow_not_found")
    );
    assert!(first.is_idle() && second.is_idle());
}

#[tokio::test]
async fn an_overloaded_cluster_is_asked_again_at_the_same_node() {
    let (mut first, second) = (FakeNode::start().await, FakeNode::start().await);
    let client = client(&[&first, &second]);
    let mut details = ErrorDetails::with_retry_info(Some(Duration::from_millis(1)));
    details.set_error_info("overloaded", "flotilla", HashMap::new());
    let overloaded = Status::with_error_details(Code::ResourceExhausted, "expected room", details);
    let conversation = async {
        let (tried, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        call.refuse(overloaded);
        let (repeated, call) = first.unary::<v1::StartRunRequest>("start_run").await;
        assert_eq!(repeated.request_id, tried.request_id);
        call.answer(started("wfrun-1"));
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    reply.expect("there was room at last");
    assert!(second.is_idle());
}

#[tokio::test]
async fn a_read_is_answered_although_the_first_node_accepts_it_and_never_responds() {
    let (mut silent, mut second) = (FakeNode::start().await, FakeNode::start().await);
    let client = client(&[&silent, &second]);
    let conversation = async {
        let (first, _held) = silent.unary::<v1::GetRunRequest>("get_run").await;
        let (hedge, call) = second.unary::<v1::GetRunRequest>("get_run").await;
        assert_eq!(hedge, first);
        call.answer(v1::Run::default());
    };
    let (reply, ()) = join!(client.get_run(v1::GetRunRequest::default()), conversation);
    reply.expect("the second node answered");
}

#[tokio::test]
async fn a_write_that_a_node_never_answers_is_repeated_with_its_id_at_another_one() {
    let (mut silent, mut second) = (FakeNode::start().await, FakeNode::start().await);
    let endpoints = vec![silent.address.clone(), second.address.clone()];
    let client = client_of(endpoints, Duration::from_secs(3));
    let conversation = async {
        let (tried, _held) = silent.unary::<v1::StartRunRequest>("start_run").await;
        let (repeated, call) = second.unary::<v1::StartRunRequest>("start_run").await;
        assert_eq!(repeated, tried);
        call.answer(started("wfrun-1"));
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    reply.expect("the second node answered");
}

/// A rejection because the time in the request's id is too long ago.
fn too_old(cluster_ms: u128) -> Status {
    let metadata = HashMap::from([("cluster_ms".to_owned(), cluster_ms.to_string())]);
    let details = ErrorDetails::with_error_info("request_too_old", "flotilla", metadata);
    Status::with_error_details(Code::FailedPrecondition, "expected a younger id", details)
}

/// The time in a request id, in milliseconds.
fn time_ms(request_id: &[u8]) -> u128 {
    let id: [u8; 16] = request_id.try_into().expect("16 bytes");
    u128::from_be_bytes(id) >> 80
}

#[tokio::test]
async fn a_client_whose_clock_is_behind_takes_its_ids_from_the_time_of_the_cluster() {
    const HOUR_MS: u128 = 3_600_000;
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let conversation = async {
        let (first, call) = node.unary::<v1::StartRunRequest>("start_run").await;
        let cluster_ms = time_ms(&first.request_id) + HOUR_MS;
        call.refuse(too_old(cluster_ms));
        let (second, call) = node.unary::<v1::StartRunRequest>("start_run").await;
        assert!(time_ms(&second.request_id).abs_diff(cluster_ms) < HOUR_MS / 2);
        call.answer(started("wfrun-1"));
    };
    let (reply, ()) = join!(client.start_run(start()), conversation);
    reply.expect("the second id is young enough");
}

#[tokio::test]
async fn an_id_that_the_caller_chose_is_not_replaced() {
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let mine = v1::StartRunRequest {
        request_id: flotilla_client::new_request_id(),
        ..start()
    };
    let conversation = async {
        let (_, call) = node.unary::<v1::StartRunRequest>("start_run").await;
        call.refuse(too_old(1));
    };
    let (reply, ()) = join!(client.start_run(mine), conversation);
    let error = reply.expect_err("an earlier copy may have been applied");
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Refused, "request_too_old")
    );
}
