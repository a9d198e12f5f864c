//! Streams: appending, reading, waiting, trimming.

use crate::node::{Node, refused};
use flotilla_api::v1;
use flotilla_api::v1::trim_stream_request::To;
use tonic::Code;

/// A wait that no test outlives.
const LONG_MS: u64 = 300_000;

pub(crate) async fn append(node: &Node, stream: &str, payloads: &[&str]) -> Vec<String> {
    let records = payloads.iter().map(|payload| v1::NewRecord {
        payload: (*payload).to_owned().into(),
        ..Default::default()
    });
    let request = v1::AppendRecordsRequest {
        stream: stream.to_owned(),
        records: records.collect(),
        ..Default::default()
    };
    let appended = node.streams().append_records(request).await.unwrap();
    appended.into_inner().ids
}

fn reading(stream: &str) -> v1::ReadRecordsRequest {
    v1::ReadRecordsRequest {
        stream: stream.to_owned(),
        ..Default::default()
    }
}

async fn read(node: &Node, request: v1::ReadRecordsRequest) -> v1::ReadRecordsResponse {
    node.streams()
        .read_records(request)
        .await
        .unwrap()
        .into_inner()
}

fn ids(response: &v1::ReadRecordsResponse) -> Vec<&str> {
    response
        .records
        .iter()
        .map(|record| record.id.as_str())
        .collect()
}

async fn info(node: &Node, stream: &str) -> v1::StreamInfo {
    let request = v1::GetStreamRequest {
        name: stream.to_owned(),
        ..Default::default()
    };
    node.streams()
        .get_stream(request)
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_read_in_the_order_in_which_they_were_appended() {
    let node = Node::start().await;
    let first = append(&node, "orders", &["1", "2"]).await;
    let second = append(&node, "orders", &["3"]).await;
    let all = [first.as_slice(), second.as_slice()].concat();

    let page = read(
        &node,
        v1::ReadRecordsRequest {
            limit: 2,
            ..reading("orders")
        },
    )
    .await;
    assert_eq!(ids(&page), all[..2]);
    assert!(page.has_more);
    let rest = read(
        &node,
        v1::ReadRecordsRequest {
            start: page.next_start,
            ..reading("orders")
        },
    )
    .await;
    assert_eq!(ids(&rest), all[2..]);
    assert!(!rest.has_more);
    let inclusive = v1::ReadRecordsRequest {
        start: all[1].clone(),
        end: all[1].clone(),
        ..reading("orders")
    };
    assert_eq!(ids(&read(&node, inclusive).await), all[1..2]);

    let missing = node.streams().read_records(reading("lost")).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "stream_not_found".to_owned())
    );
    let unreadable = v1::ReadRecordsRequest {
        start: "yesterday".to_owned(),
        ..reading("orders")
    };
    let unreadable = node.streams().read_records(unreadable).await;
    assert_eq!(refused(unreadable).0, Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_is_sent_again_is_appended_once() {
    let node = Node::start().await;
    let request = v1::AppendRecordsRequest {
        stream: "orders".to_owned(),
        records: vec![v1::NewRecord::default()],
        request_id: vec![7; 16].into(),
        ..Default::default()
    };
    let first = node
        .streams()
        .append_records(request.clone())
        .await
        .unwrap();
    let again = node.streams().append_records(request).await.unwrap();
    assert_eq!(first.into_inner().ids, again.into_inner().ids);
    assert_eq!(info(&node, "orders").await.record_count, 1);
    let nothing = v1::AppendRecordsRequest {
        stream: "orders".to_owned(),
        ..Default::default()
    };
    let nothing = node.streams().append_records(nothing).await;
    assert_eq!(
        refused(nothing),
        (Code::InvalidArgument, "records_missing".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_at_the_tail_whose_node_stops_says_where_to_continue() {
    const TRIES: usize = 10;
    let mut node = Node::start().await;
    let old = append(&node, "orders", &["old"]).await;
    for _ in 0..TRIES {
        let waiting = v1::ReadRecordsRequest {
            start: "$".to_owned(),
            block_ms: LONG_MS,
            ..reading("orders")
        };
        let mut client = node.streams();
        let waiting = tokio::spawn(async move { client.read_records(waiting).await });
        // No event announces that the call waits: a node that stops before that refuses it.
        let _ = info(&node, "orders").await;
        node = node.restart().await;
        if let Ok(page) = waiting.await.unwrap() {
            let page = page.into_inner();
            assert!(page.records.is_empty());
            let new = append(&node, "orders", &["new"]).await;
            let on = v1::ReadRecordsRequest {
                start: page.next_start,
                ..reading("orders")
            };
            assert_eq!(ids(&read(&node, on).await), new, "after {old:?}");
            return;
        }
    }
    panic!("expected a page, but the call was refused {TRIES} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_at_the_tail_waits_on_any_node_for_what_comes() {
    let nodes = Node::start_cluster().await;
    append(&nodes[0], "orders", &["old"]).await;
    for (reader, writer) in [(0, 1), (1, 2), (2, 0)] {
        let waiting = v1::ReadRecordsRequest {
            start: "$".to_owned(),
            block_ms: LONG_MS,
            ..reading("orders")
        };
        let mut client = nodes[reader].streams();
        let waiting = tokio::spawn(async move { client.read_records(waiting).await });
        // The reader's tail is where its node finds it when it reads: it may miss the first
        // records.
        let mut appended = Vec::new();
        while !waiting.is_finished() {
            appended.extend(append(&nodes[writer], "orders", &["new"]).await);
        }
        let found = waiting.await.unwrap().unwrap().into_inner();
        assert!(!found.records.is_empty());
        assert!(
            ids(&found)
                .iter()
                .all(|id| appended.iter().any(|new| new == id))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stays_in_its_partition_and_a_read_can_be_of_one() {
    let node = Node::start().await;
    let creation = v1::CreateStreamRequest {
        name: "orders".to_owned(),
        partitions: 4,
        ..Default::default()
    };
    let create = |request: v1::CreateStreamRequest| {
        let mut streams = node.streams();
        async move { streams.create_stream(request).await }
    };
    assert!(create(creation.clone()).await.unwrap().into_inner().created);
    assert!(!create(creation.clone()).await.unwrap().into_inner().created);
    let other = v1::CreateStreamRequest {
        partitions: 5,
        ..creation
    };
    assert_eq!(
        refused(create(other).await),
        (Code::AlreadyExists, "stream_exists".to_owned())
    );
    let record = |key: &str, partition| v1::NewRecord {
        partition_key: key.to_owned(),
        partition,
        ..Default::default()
    };
    let request = v1::AppendRecordsRequest {
        stream: "orders".to_owned(),
        records: vec![
            record("ada", None),
            record("", Some(3)),
            record("ada", None),
        ],
        ..Default::default()
    };
    node.streams().append_records(request).await.unwrap();
    let all = read(&node, reading("orders")).await.records;
    assert_eq!(all[0].partition, all[2].partition);
    assert_eq!(
        (all[0].partition_key.as_str(), all[1].partition),
        ("ada", 3)
    );
    let of_one = v1::ReadRecordsRequest {
        partition: Some(3),
        ..reading("orders")
    };
    assert!(read(&node, of_one).await.records.contains(&all[1]));
    let outside = v1::AppendRecordsRequest {
        stream: "orders".to_owned(),
        records: vec![record("", Some(4))],
        ..Default::default()
    };
    let outside = node.streams().append_records(outside).await;
    assert_eq!(
        refused(outside),
        (Code::InvalidArgument, "partition_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_trimmed_listed_and_deleted() {
    let node = Node::start().await;
    let appended = append(&node, "orders", &["1", "2", "3"]).await;
    let trim = |to| {
        let request = v1::TrimStreamRequest {
            name: "orders".to_owned(),
            to,
            ..Default::default()
        };
        let mut streams = node.streams();
        async move { streams.trim_stream(request).await }
    };
    assert_eq!(refused(trim(None).await).0, Code::InvalidArgument);
    trim(Some(To::BeforeId(appended[1].clone()))).await.unwrap();
    assert_eq!(
        info(&node, "orders").await.first_id.as_ref(),
        Some(&appended[1])
    );
    trim(Some(To::KeepRecords(1))).await.unwrap();
    let trimmed = info(&node, "orders").await;
    assert_eq!((trimmed.record_count, trimmed.lost_count), (1, 0));
    assert_eq!(trimmed.first_id, trimmed.last_id);

    let listed = v1::ListStreamsRequest::default();
    let listed = node.streams().list_streams(listed).await.unwrap();
    assert_eq!(listed.into_inner().items, [trimmed]);
    let delete = || {
        let request = v1::DeleteStreamRequest {
            name: "orders".to_owned(),
            ..Default::default()
        };
        let mut streams = node.streams();
        async move { streams.delete_stream(request).await }
    };
    assert!(delete().await.unwrap().into_inner().deleted);
    assert!(!delete().await.unwrap().into_inner().deleted);
}
