//! Consumer groups: joining, taking, acks and nacks.

use crate::node::{Node, refused};
use crate::streams::append;
use crate::wait::until;
use flotilla_api::v1;
use tonic::{Code, Status};

/// A wait that no test outlives.
const LONG_MS: u64 = 300_000;

fn joining(consumer: &str, settings: v1::GroupSettings) -> v1::JoinGroupRequest {
    v1::JoinGroupRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        consumer: consumer.to_owned(),
        incarnation: 1,
        create: Some(settings),
        ..Default::default()
    }
}

async fn join(node: &Node, consumer: &str, settings: v1::GroupSettings) -> v1::JoinGroupResponse {
    let request = joining(consumer, settings);
    node.streams()
        .join_group(request)
        .await
        .unwrap()
        .into_inner()
}

fn taking(consumer: &str, take_id: u64, block_ms: u64) -> v1::TakeRecordsRequest {
    v1::TakeRecordsRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        consumer: consumer.to_owned(),
        take_id,
        limit: 0,
        block_ms: Some(block_ms),
        incarnation: 1,
        ..Default::default()
    }
}

async fn take(node: &Node, request: v1::TakeRecordsRequest) -> Result<Vec<v1::Delivery>, Status> {
    let taken = node.streams().take_records(request).await?;
    Ok(taken.into_inner().deliveries)
}

fn ids(deliveries: &[v1::Delivery]) -> Vec<String> {
    let records = deliveries.iter().filter_map(|one| one.record.as_ref());
    records.map(|record| record.id.clone()).collect()
}

async fn ack(node: &Node, consumer: &str, take_id: u64, ids: Vec<String>) -> u32 {
    let request = v1::AckRecordsRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        consumer: consumer.to_owned(),
        take_id,
        ids,
        ..Default::default()
    };
    let acked = node.streams().ack_records(request).await.unwrap();
    acked.into_inner().acked_count
}

async fn nack(node: &Node, consumer: &str, take_id: u64, ids: Vec<String>) -> u32 {
    let request = v1::NackRecordsRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        consumer: consumer.to_owned(),
        take_id,
        ids,
        ..Default::default()
    };
    let nacked = node.streams().nack_records(request).await.unwrap();
    nacked.into_inner().nacked_count
}

async fn info(node: &Node) -> v1::GroupInfo {
    let request = v1::GetGroupRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        ..Default::default()
    };
    node.streams()
        .get_group(request)
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_that_is_sent_again_gives_the_same_records_until_they_are_acknowledged() {
    let node = Node::start().await;
    let appended = append(&node, "orders", &["1", "2"]).await;
    let joined = join(&node, "c1", v1::GroupSettings::default()).await;
    assert_eq!(
        (joined.mode(), joined.ack_timeout_ms),
        (v1::GroupMode::Shared, 30_000)
    );
    let first = take(&node, taking("c1", 7, LONG_MS)).await.unwrap();
    assert_eq!(ids(&first), appended);
    assert_eq!(first[0].attempt, 1);
    assert_eq!(take(&node, taking("c1", 7, LONG_MS)).await.unwrap(), first);
    assert!(take(&node, taking("c1", 8, 0)).await.unwrap().is_empty());

    assert_eq!(ack(&node, "c1", 7, appended[..1].to_vec()).await, 1);
    assert_eq!(ack(&node, "c1", 7, appended.clone()).await, 1);
    assert_eq!(ack(&node, "c1", 7, appended).await, 0);
    let group = info(&node).await;
    assert_eq!(
        (group.acked_count, group.pending_count, group.lag),
        (2, 0, 0)
    );
    assert_eq!(group.consumers[0].name, "c1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_waits_on_any_node_and_each_record_goes_to_one_consumer() {
    let nodes = Node::start_cluster().await;
    append(&nodes[0], "orders", &["0"]).await;
    let tail = || v1::GroupSettings {
        start: "$".to_owned(),
        ..Default::default()
    };
    let consumers = ["c1", "c2", "c3"];
    for (node, consumer) in nodes.iter().zip(consumers) {
        join(node, consumer, tail()).await;
    }
    let waits = nodes.iter().zip(consumers).map(|(node, consumer)| {
        let request = v1::TakeRecordsRequest {
            limit: 1,
            ..taking(consumer, 7, LONG_MS)
        };
        let mut client = node.streams();
        tokio::spawn(async move { client.take_records(request).await })
    });
    let waits: Vec<_> = waits.collect();
    let mut appended = Vec::new();
    for node in &nodes {
        appended.extend(append(node, "orders", &["1"]).await);
    }
    let mut taken = Vec::new();
    for wait in waits {
        let taken_here = wait.await.unwrap().unwrap().into_inner().deliveries;
        taken.extend(ids(&taken_here));
    }
    taken.sort_unstable();
    appended.sort_unstable();
    assert_eq!(taken, appended);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_given_back_too_often_goes_to_the_dead_letter_stream() {
    let node = Node::start().await;
    let appended = append(&node, "orders", &["poison"]).await;
    let settings = v1::GroupSettings {
        max_deliveries: Some(3),
        ..Default::default()
    };
    join(&node, "c1", settings).await;
    for attempt in 1..=3 {
        let taken = take(&node, taking("c1", attempt, LONG_MS)).await.unwrap();
        assert_eq!(u64::from(taken[0].attempt), attempt);
        assert_eq!(nack(&node, "c1", attempt, appended.clone()).await, 1);
    }
    assert!(take(&node, taking("c1", 9, 0)).await.unwrap().is_empty());
    assert_eq!(info(&node).await.dead_letter_count, 1);
    let request = v1::ReadRecordsRequest {
        stream: "orders.billing.dlq".to_owned(),
        ..Default::default()
    };
    let dead = node.streams().read_records(request).await.unwrap();
    assert_eq!(dead.into_inner().records[0].payload, "poison");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_consumer_had_in_hand_goes_to_the_others_when_it_leaves() {
    let node = Node::start().await;
    let appended = append(&node, "orders", &["1"]).await;
    join(&node, "c1", v1::GroupSettings::default()).await;
    join(&node, "c2", v1::GroupSettings::default()).await;
    let first = take(&node, taking("c1", 1, LONG_MS)).await.unwrap();
    assert_eq!(ids(&first), appended);
    let request = v1::ListPendingRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        ..Default::default()
    };
    let pending = node.streams().list_pending(request).await.unwrap();
    let pending = pending.into_inner().items;
    assert_eq!(
        (pending[0].consumer.as_str(), pending[0].attempts),
        ("c1", 1)
    );

    let mut client = node.streams();
    let request = taking("c2", 1, LONG_MS);
    let waiting = tokio::spawn(async move { client.take_records(request).await });
    let leaving = v1::LeaveGroupRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        consumer: "c1".to_owned(),
        ..Default::default()
    };
    let left = node.streams().leave_group(leaving).await.unwrap();
    assert!(left.into_inner().left);
    let second = waiting.await.unwrap().unwrap().into_inner().deliveries;
    assert_eq!((ids(&second), second[0].attempt), (appended, 1));
    let late = take(&node, taking("c1", 2, 0)).await;
    assert_eq!(
        refused(late),
        (Code::NotFound, "consumer_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_name_a_newer_one_has_taken_gets_nothing_and_learns_why() {
    let replaced = (Code::FailedPrecondition, "consumer_replaced".to_owned());
    let node = Node::start().await;
    let appended = append(&node, "orders", &["1"]).await;
    join(&node, "c1", v1::GroupSettings::default()).await;
    let first = take(&node, taking("c1", 1, LONG_MS)).await.unwrap();
    assert_eq!(ids(&first), appended);
    let mut client = node.streams();
    let request = taking("c1", 2, LONG_MS);
    let waiting = tokio::spawn(async move { client.take_records(request).await });

    let newer = v1::JoinGroupRequest {
        incarnation: 2,
        ..joining("c1", v1::GroupSettings::default())
    };
    node.streams().join_group(newer).await.unwrap();
    assert_eq!(refused(waiting.await.unwrap()), replaced);
    assert_eq!(refused(take(&node, taking("c1", 1, 0)).await), replaced);
    let renewal = v1::JoinGroupRequest {
        renewal: true,
        ..joining("c1", v1::GroupSettings::default())
    };
    assert_eq!(refused(node.streams().join_group(renewal).await), replaced);
    let request = v1::TakeRecordsRequest {
        incarnation: 2,
        ..taking("c1", 3, LONG_MS)
    };
    assert_eq!(ids(&take(&node, request).await.unwrap()), appended);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_ends_its_consumers_process_goes_to_the_dead_letter_stream() {
    let node = Node::start().await;
    append(&node, "orders", &["poison"]).await;
    let creation = v1::CreateStreamRequest {
        name: "orders.billing.dlq".to_owned(),
        ..Default::default()
    };
    node.streams().create_stream(creation).await.unwrap();
    let settings = v1::GroupSettings {
        max_deliveries: Some(2),
        ..Default::default()
    };
    for incarnation in 1..=3 {
        let restarted = v1::JoinGroupRequest {
            incarnation,
            ..joining("c1", settings.clone())
        };
        node.streams().join_group(restarted).await.unwrap();
        if incarnation < 3 {
            let request = v1::TakeRecordsRequest {
                incarnation,
                ..taking("c1", incarnation, LONG_MS)
            };
            let taken = take(&node, request).await.unwrap();
            assert_eq!(u64::from(taken[0].attempt), incarnation);
        }
    }
    let request = v1::ReadRecordsRequest {
        stream: "orders.billing.dlq".to_owned(),
        block_ms: LONG_MS,
        ..Default::default()
    };
    let dead = node.streams().read_records(request).await.unwrap();
    assert_eq!(dead.into_inner().records[0].payload, "poison");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_touch_moves_the_end_of_the_time_and_comes_too_late_for_what_is_settled() {
    let node = Node::start().await;
    let appended = append(&node, "orders", &["1"]).await;
    join(&node, "c1", v1::GroupSettings::default()).await;
    let taken = take(&node, taking("c1", 1, LONG_MS)).await.unwrap();
    let touch = |extend_ms| {
        let request = v1::TouchRecordsRequest {
            stream: "orders".to_owned(),
            group: "billing".to_owned(),
            consumer: "c1".to_owned(),
            take_id: 1,
            ids: appended.clone(),
            extend_ms,
            ..Default::default()
        };
        let mut streams = node.streams();
        async move { streams.touch_records(request).await }
    };
    let touched = touch(3_600_000).await.unwrap().into_inner();
    assert!(touched.ack_deadline_at_ms > taken[0].ack_deadline_at_ms);
    assert_eq!(refused(touch(0).await).0, Code::InvalidArgument);
    ack(&node, "c1", 1, appended.clone()).await;
    assert_eq!(
        refused(touch(1_000).await),
        (Code::FailedPrecondition, "delivery_ended".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_take_ends_when_its_group_is_deleted() {
    let node = Node::start().await;
    append(&node, "orders", &["1"]).await;
    let settings = v1::GroupSettings {
        start: "$".to_owned(),
        ..Default::default()
    };
    join(&node, "c1", settings).await;
    let mut client = node.streams();
    let request = taking("c1", 1, LONG_MS);
    let waiting = tokio::spawn(async move { client.take_records(request).await });
    let deletion = v1::DeleteGroupRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        ..Default::default()
    };
    let deleted = node.streams().delete_group(deletion).await.unwrap();
    assert!(deleted.into_inner().deleted);
    assert_eq!(
        refused(waiting.await.unwrap()),
        (Code::NotFound, "group_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_created_once_with_its_settings() {
    let node = Node::start().await;
    let creation = |ack_timeout_ms| v1::CreateGroupRequest {
        stream: "orders".to_owned(),
        group: "billing".to_owned(),
        settings: Some(v1::GroupSettings {
            mode: v1::GroupMode::KeyShared.into(),
            ack_timeout_ms,
            ..Default::default()
        }),
        ..Default::default()
    };
    let create = |ack_timeout_ms| {
        let mut streams = node.streams();
        async move { streams.create_group(creation(ack_timeout_ms)).await }
    };
    assert_eq!(
        refused(create(None).await),
        (Code::NotFound, "stream_not_found".to_owned())
    );
    append(&node, "orders", &["1"]).await;
    assert!(create(None).await.unwrap().into_inner().created);
    assert!(!create(None).await.unwrap().into_inner().created);
    assert_eq!(
        refused(create(Some(5)).await),
        (Code::AlreadyExists, "group_exists".to_owned())
    );
    let invalid = (Code::InvalidArgument, "invalid_argument".to_owned());
    for ack_timeout_ms in [0, 86_400_001, u64::MAX] {
        assert_eq!(refused(create(Some(ack_timeout_ms)).await), invalid);
    }
    let listed = v1::ListGroupsRequest {
        stream: "orders".to_owned(),
        ..Default::default()
    };
    let listed = node.streams().list_groups(listed).await.unwrap();
    let listed = listed.into_inner().items;
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].mode(), listed[0].lag, listed[0].max_deliveries),
        (v1::GroupMode::KeyShared, 1, 10)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_counted_for_the_worker_that_the_consumer_names() {
    let node = Node::start().await;
    let appended = append(&node, "orders", &["1", "2"]).await;
    let registration = v1::RegisterRequest {
        worker_id: "w1".to_owned(),
        incarnation: 1,
        worker_type: v1::WorkerType::Stream.into(),
        processes: vec![v1::Process {
            name: "orders/billing".to_owned(),
            kind: v1::ProcessKind::StreamConsumer.into(),
        }],
        ..Default::default()
    };
    node.workers().register(registration).await.unwrap();
    let joining = v1::JoinGroupRequest {
        worker_id: "w1".to_owned(),
        ..joining("front", v1::GroupSettings::default())
    };
    node.streams().join_group(joining).await.unwrap();
    take(&node, taking("front", 7, LONG_MS)).await.unwrap();
    ack(&node, "front", 7, appended[..1].to_vec()).await;
    nack(&node, "front", 7, appended[1..].to_vec()).await;
    let request = v1::GetWorkerRequest {
        worker_id: "w1".to_owned(),
        ..Default::default()
    };
    let worker = node
        .workers()
        .get_worker(request)
        .await
        .unwrap()
        .into_inner();
    let process = &worker.processes[0];
    assert_eq!((process.run_count, process.fail_count), (1, 1));
    assert_eq!((worker.tasks_completed, worker.tasks_failed), (1, 1));

    // While the worker drains, its consumer gets nothing, neither immediately nor by waiting.
    let drain = v1::DrainRequest {
        worker_id: "w1".to_owned(),
        ..Default::default()
    };
    node.workers().drain(drain).await.unwrap();
    let nothing = take(&node, taking("front", 8, 1)).await.unwrap();
    assert_eq!(nothing, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn joining_a_missing_stream_adds_no_entry_to_the_log() {
    let node = Node::start().await;
    let status = async || {
        let status = node.cluster().get_status(v1::GetStatusRequest {}).await;
        status.unwrap().into_inner()
    };
    let applied_index = async || status().await.nodes[0].applied_index;
    // A new cluster agrees on the engine version by itself, which is an entry.
    until("the newest engine version", async || {
        let status = status().await;
        (status.engine_version == status.nodes[0].engine_version).then_some(())
    })
    .await;
    // The version shows before the index of its entry does. The reply to a later write shows after.
    let setting = v1::SetKeyRequest {
        key: "k1".to_owned(),
        value: "v1".to_owned().into(),
        ..Default::default()
    };
    node.keys().set_key(setting).await.unwrap();
    let before = applied_index().await;
    let request = joining("c1", v1::GroupSettings::default());
    assert_eq!(
        refused(node.streams().join_group(request).await),
        (Code::NotFound, "stream_not_found".to_owned())
    );
    assert_eq!(applied_index().await, before);
}
