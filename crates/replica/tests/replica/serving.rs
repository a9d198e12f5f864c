//! Writes and reads from any node, across changes of leaders.

use crate::cluster::{
    Cluster, LONG, REGISTERED, UNCHANGED, copy_as_killed, register, submit, submit_surely,
};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::{Namespace, StreamName};
use flotilla_engine::store::{KeyRange, Order, Reader};
use flotilla_engine::{
    AppendRecords, Body, Entry, NewRecord, Rejection, Reply, TrimStream, TrimTo,
};
use flotilla_replica::{Environment, Notice, Observer, Replica, Role, SubmitError, Tuning, View};
use futures::future::join_all;
use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

fn rows(view: &View<'_>) -> usize {
    let mut count = 0;
    let engine_tables = KeyRange {
        from: vec![1],
        to: vec![0xF0],
    };
    view.scan(&engine_tables, Order::Ascending, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })
    .expect("the store works");
    count
}

async fn readable(replica: &Replica) {
    let mut readable = replica.readable();
    tokio::time::timeout(LONG, readable.wait_for(|is| *is))
        .await
        .expect("in time")
        .expect("a running node");
}

#[tokio::test]
async fn a_single_node_forms_its_cluster_and_serves() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let node = cluster.node(1);
    assert_eq!(
        submit(node, register("pack")).await.unwrap(),
        Ok(REGISTERED)
    );
    node.read_index(Instant::now() + LONG).await.unwrap();
    readable(node).await;
    assert!(node.view(rows).unwrap() > 0);
    let status = node.status().await;
    assert_eq!(status.leader.map(|leader| leader.0), Some(1));
    assert!(status.cluster_id.is_some_and(|id| id.len() == 32));
}

/// A node that served its status held its metrics while it borrowed them again; when consensus
/// wanted to write them in between, both deadlocked, and the node with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_is_asked_how_it_stands_never_stops_consensus() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let ask = || {
        let node = cluster.node(1).clone();
        tokio::spawn(async move {
            for _ in 0..5_000 {
                let _ = node.status().await;
            }
        })
    };
    let asking = [ask(), ask(), ask()];
    for number in 0..300 {
        let command = register(&format!("action-{number}"));
        let submitted = tokio::time::timeout(LONG, submit(cluster.node(1), command)).await;
        assert_eq!(submitted.expect("in time").unwrap(), Ok(REGISTERED));
    }
    for response in asking {
        let response = tokio::time::timeout(LONG, response).await;
        response.expect("in time").expect("a status");
    }
}

#[tokio::test]
async fn every_node_takes_commands_and_all_replicas_end_up_the_same() {
    let cluster = Cluster::started(3, Tuning::default()).await;
    let commands = (0..300).map(|number| {
        let node = cluster.node(number % 3 + 1);
        submit(node, register(&format!("action-{number}")))
    });
    for result in join_all(commands).await {
        assert_eq!(result.unwrap(), Ok(REGISTERED));
    }
    cluster.agreed().await;
    let leader = cluster.node(cluster.leader().await);
    let counters = leader.counters();
    assert_eq!(counters.commands_applied, 300);
    assert!(counters.entries_proposed < 300, "{counters:?}");
    assert!(
        counters.log_fsyncs < counters.commands_applied,
        "{counters:?}"
    );
}

#[tokio::test]
async fn a_read_on_any_node_sees_what_was_acknowledged_on_another() {
    let cluster = Cluster::started(3, Tuning::default()).await;
    for number in 0..10 {
        let writer = cluster.node(number % 3 + 1);
        submit(writer, register(&format!("action-{number}")))
            .await
            .unwrap()
            .unwrap();
        let reader = cluster.node((number + 1) % 3 + 1);
        readable(reader).await;
        reader.read_index(Instant::now() + LONG).await.unwrap();
        let applied = reader.view(|view| view.index()).unwrap();
        assert!(applied > number, "{applied}");
        assert!(reader.view(rows).unwrap() > usize::try_from(number).unwrap());
    }
}

#[tokio::test]
async fn acknowledged_commands_survive_the_leader_and_the_rest_continues() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    for number in 0..20 {
        submit(cluster.node(leader), register(&format!("action-{number}")))
            .await
            .unwrap()
            .unwrap();
    }
    cluster.kill(leader);
    let survivor = cluster.ids()[0];
    let again = submit_surely(cluster.node(survivor), register("action-7")).await;
    assert_eq!(again, Ok(UNCHANGED));
    assert_ne!(cluster.leader().await, leader);
    cluster.start(leader).await;
    cluster.agreed().await;
}

#[tokio::test]
async fn all_nodes_may_restart_at_once_and_lose_nothing() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    for number in 0..20 {
        submit(cluster.node(1), register(&format!("action-{number}")))
            .await
            .unwrap()
            .unwrap();
    }
    let (_, digest) = cluster.agreed().await;
    for id in cluster.ids() {
        cluster.stop(id).await;
    }
    for id in 1..=3 {
        cluster.start(id).await;
    }
    for number in 0..20 {
        let command = register(&format!("action-{number}"));
        assert_eq!(
            submit(cluster.node(2), command).await.unwrap(),
            Ok(UNCHANGED)
        );
    }
    assert_ne!(cluster.agreed().await.1, digest, "the chain has grown");
}

#[tokio::test]
async fn without_a_quorum_commands_fail_as_retryable_within_their_deadline_and_status_answers() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    let kept = cluster.follower().await;
    for id in cluster.ids() {
        if id != kept {
            cluster.kill(id);
        }
    }
    let node = cluster.node(kept);
    // A command that was accepted before the quorum was lost is unknown; later ones are not
    // accepted.
    let refused = async {
        loop {
            let deadline = Instant::now() + Duration::from_millis(500);
            match node
                .submit(register("ship").by_anyone(), deadline)
                .await
                .unwrap_err()
            {
                SubmitError::Unknown => {}
                error => return error,
            }
        }
    };
    let refused = tokio::time::timeout(LONG, refused).await.expect("in time");
    assert_eq!(refused, SubmitError::NoLeader);
    assert!(
        node.read_index(Instant::now() + Duration::from_millis(300))
            .await
            .is_err()
    );
    let status = node.status().await;
    assert_eq!(status.leader, None);
    let healthy: Vec<_> = status.nodes.iter().filter(|node| node.is_healthy).collect();
    assert_eq!(healthy.len(), 1);
    assert_eq!(healthy[0].node_id.0, kept);
    assert_eq!(status.nodes.len(), 3);
}

#[tokio::test]
async fn a_leader_that_lost_its_quorum_says_that_there_is_no_leader_and_not_that_it_is_full() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    let leader = cluster.leader().await;
    for id in cluster.ids() {
        if id != leader {
            cluster.kill(id);
        }
    }
    let node = cluster.node(leader);
    let refused = async {
        loop {
            let deadline = Instant::now() + Duration::from_millis(250);
            match node
                .submit(register("ship").by_anyone(), deadline)
                .await
                .unwrap_err()
            {
                // It was proposed while another entry could be in flight.
                SubmitError::Unknown => {}
                error => return error,
            }
        }
    };
    let refused = tokio::time::timeout(LONG, refused).await.expect("in time");
    assert_eq!(refused, SubmitError::NoLeader);
}

#[tokio::test]
async fn status_tells_roles_digests_and_addresses_of_all_members() {
    let cluster = Cluster::started(3, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    let response = cluster.node(cluster.follower().await);
    // An election on a busy machine may come between the members' responses.
    let (status, (index, digest)) = loop {
        let agreed = cluster.agreed().await;
        let status = response.status().await;
        let is_even = status
            .nodes
            .iter()
            .all(|node| node.last_log_index == agreed.0);
        if is_even && status.leader.is_some() {
            break (status, agreed);
        }
    };
    for node in &status.nodes {
        let is_leader = status.leader == Some(node.node_id);
        let expected = if is_leader {
            Role::Leader
        } else {
            Role::Follower
        };
        assert_eq!(
            (node.role, node.is_voter, node.is_healthy),
            (expected, true, true)
        );
        assert_eq!((node.applied_index, node.lag), (index, 0));
        assert_eq!(node.digest.map(|digest| digest.value), Some(digest));
        assert_eq!(node.address, format!("client-{}:9000", node.node_id.0));
        assert_eq!(node.version, "test");
    }
}

#[tokio::test]
async fn a_leader_hands_over_on_request() {
    let cluster = Cluster::started(3, Tuning::default()).await;
    let old = cluster.leader().await;
    let new = cluster.follower().await;
    assert!(cluster.transfer(new, new).await.unwrap());
    let mut leadership = cluster.node(new).leadership();
    let handed_over = leadership.wait_for(|leadership| leadership.is_ready);
    tokio::time::timeout(LONG, handed_over)
        .await
        .expect("in time")
        .unwrap();
    submit(cluster.node(old), register("pack"))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_command_that_is_larger_than_an_entry_is_refused_before_proposal() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let mut command = register("pack");
    if let flotilla_engine::Body::RegisterAction(action) = &mut command.body {
        action.module = Some(vec![7; flotilla_engine::limits::ENTRY_BYTES_MAX]);
    }
    let refused = submit(cluster.node(1), command).await.unwrap_err();
    assert!(
        matches!(refused, SubmitError::TooLarge { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn new_work_is_refused_when_the_queue_is_full() {
    let tuning = Tuning {
        intake_max: 1,
        ..Tuning::default()
    };
    let cluster = Cluster::started(1, tuning).await;
    let node = cluster.node(1);
    let commands = (0..200).map(|number| submit(node, register(&format!("action-{number}"))));
    let results = join_all(commands).await;
    let is_refused = |result: &&Result<_, _>| matches!(result, Err(SubmitError::Overloaded { .. }));
    let refused = results.iter().filter(is_refused).count();
    assert!(refused > 0);
    assert!(results.iter().any(Result::is_ok));
    assert_eq!(node.counters().commands_refused, refused as u64);
}

#[tokio::test]
async fn a_subscriber_receives_in_order_what_was_applied() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let node = cluster.node(1);
    let mut subscription = node.subscribe();
    let begin = flotilla_engine::Command::new(
        flotilla_engine::ids::Namespace::default_namespace(),
        flotilla_engine::InvokeAction {
            name: flotilla_engine::ids::ActionName::new("pack").unwrap(),
            input: flotilla_engine::json::Json::null(),
            priority: 10,
            delay_ms: 0,
            labels: std::collections::BTreeMap::new(),
            idempotency_key: None,
        },
    )
    .untyped();
    submit(node, register("pack")).await.unwrap().unwrap();
    submit(node, begin.clone()).await.unwrap().unwrap();
    submit(node, begin).await.unwrap().unwrap();
    let mut last = 0;
    for _ in 0..2 {
        let notice = tokio::time::timeout(LONG, subscription.next())
            .await
            .unwrap()
            .unwrap();
        let Notice::Applied(batch) = notice else {
            panic!("nothing was lost")
        };
        assert!(batch.index > last && !batch.effects.is_empty(), "{batch:?}");
        assert_eq!(batch.node.0, 1);
        last = batch.index;
    }
}

#[tokio::test]
async fn what_a_killed_node_acknowledged_is_there_when_it_starts_again() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    for number in 0..100 {
        submit(cluster.node(1), register(&format!("action-{number}")))
            .await
            .unwrap()
            .unwrap();
    }
    let before = cluster.node(1).applied_position();
    let live = cluster.data_directory(1);
    let killed = live.with_extension("killed");
    copy_as_killed(&live, &killed);
    cluster.stop(1).await;
    fs::rename(&live, live.with_extension("stopped")).unwrap();
    fs::rename(&killed, &live).unwrap();
    cluster.start(1).await;
    cluster.leader().await;
    let node = cluster.node(1);
    assert!(
        node.applied_position().0 > before.0,
        "the new term adds an entry to what was there"
    );
    for number in 0..100 {
        let command = register(&format!("action-{number}"));
        assert_eq!(submit(node, command).await.unwrap(), Ok(UNCHANGED));
    }
}

#[tokio::test]
async fn a_follower_whose_log_lost_entries_that_its_state_has_continues_and_stops_no_other_node() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    for number in 0..20 {
        let name = format!("action-{number}");
        submit(cluster.node(leader), register(&name))
            .await
            .unwrap()
            .unwrap();
    }
    cluster.agreed().await;
    let follower = cluster.follower().await;
    cluster.kill(follower);
    lose_end_of_log(&cluster.data_directory(follower), 1_000);
    cluster.start(follower).await;
    submit(cluster.node(leader), register("one-more"))
        .await
        .unwrap()
        .unwrap();
    cluster.agreed().await;
    assert_eq!(cluster.leader().await, leader, "it leads on");
    assert!(cluster.node(leader).fatal().borrow().is_none());
}

/// Cuts off the last bytes of the newest file of a closed log.
fn lose_end_of_log(data_directory: &Path, bytes: u64) {
    let files = fs::read_dir(data_directory.join("log")).expect("a folder of the test");
    let files = files.map(|entry| entry.expect("a file of the test").path());
    let logs = files.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
    let newest = logs.max().expect("a log that was written");
    let newest = OpenOptions::new().write(true).open(newest);
    let newest = newest.expect("a file of the test");
    let length = newest.metadata().expect("a file of the test").len();
    newest.set_len(length - bytes).expect("a file of the test");
}

/// Counts the commands that found the budget of their entry used up.
#[derive(Default)]
struct FullEntries(AtomicUsize);

impl Observer for FullEntries {
    fn commands_applied(&self, _: &Entry, replies: &[Result<Reply, Rejection>]) {
        let is_full = |reply: &&Result<_, _>| matches!(reply, Err(Rejection::EntryFull));
        let full_count = replies.iter().filter(is_full).count();
        self.0.fetch_add(full_count, Ordering::Relaxed);
    }

    fn entry_applied(&self, _: Duration, _: usize) {}

    fn log_synced(&self, _: Duration) {}
}

#[tokio::test]
async fn what_finds_no_budget_in_its_entry_is_proposed_again() {
    let observer = Arc::new(FullEntries::default());
    let environment = Environment {
        observer: observer.clone(),
        ..Environment::default()
    };
    let mut cluster = Cluster::new(1, Tuning::default());
    cluster.start_with(1, environment).await;
    cluster.leader().await;
    let node = cluster.node(1);
    let record = NewRecord {
        payload: Bytes::from("{}"),
        headers: std::collections::BTreeMap::new(),
        key: None,
        partition: None,
    };
    let stream = StreamName::new("orders").expect("a name");
    let append = AppendRecords {
        stream: stream.clone(),
        records: vec![record; 1_000],
    };
    let append = Body::AppendRecords(append).into_command(Namespace::default_namespace());
    for _ in 0..100 {
        submit(node, append.clone())
            .await
            .expect("known")
            .expect("accepted");
    }
    // Each deletes as many rows as one command may: together, more than one entry may.
    let to = TrimTo::Newest(0);
    let trim = Body::TrimStream(TrimStream { stream, to });
    let trim = trim.into_command(Namespace::default_namespace());
    let trims = (0..100).map(|_| submit(node, trim.clone()));
    for trimmed in join_all(trims).await {
        let reply = trimmed.expect("known").expect("accepted");
        assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
    }
    let full_count = observer.0.load(Ordering::Relaxed);
    assert!(full_count > 0, "each entry had budget for all");
}
