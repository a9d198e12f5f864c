//! What a node exposes to operators: metrics and probes.

use crate::node::{Node, free_address, refused, start_of};
use crate::wait::until;
use crate::web::get;
use flotilla_api::v1;
use flotilla_replica::{RocksStorage, Storage};
use flotilla_server::{METRICS, Metric, MetricKind, Server};
use std::collections::{BTreeMap, BTreeSet};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use v1::cluster_service_client::ClusterServiceClient;
use v1::kv_service_client::KvServiceClient;

/// A scraped page.
struct Page {
    /// By the name of the metric and its labels, as written.
    samples: BTreeMap<String, f64>,
    /// The types that the page declares.
    types: BTreeMap<String, String>,
}

impl Page {
    async fn of(node: &Node) -> Self {
        let (status, text) = get(&node.http_address, "/metrics").await;
        assert_eq!(status, 200, "{text}");
        let mut page = Self {
            samples: BTreeMap::new(),
            types: BTreeMap::new(),
        };
        for line in text.lines() {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').unwrap();
                let other = page.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(other, None, "{name} is declared once");
            } else if !line.starts_with('#') {
                let (name, number) = line.rsplit_once(' ').unwrap();
                let other = page
                    .samples
                    .insert(name.to_owned(), number.parse().unwrap());
                assert_eq!(other, None, "{name} is there once");
            }
        }
        page
    }

    fn value(&self, name: &str) -> f64 {
        let found = self.samples.get(name);
        *found.unwrap_or_else(|| panic!("expected {name} among {:#?}", self.samples.keys()))
    }

    /// The label names of each of the metric's samples, without a bucket's bound.
    fn labels(&self, metric: &Metric) -> BTreeSet<Vec<String>> {
        let suffix = match metric.kind {
            MetricKind::Histogram => "_bucket",
            MetricKind::Counter | MetricKind::Gauge => "",
        };
        let name = format!("{}{suffix}", metric.name);
        let samples = self.samples.keys();
        let of_metric = samples.filter(|sample| sample.split('{').next() == Some(&name));
        of_metric.map(|sample| label_names(sample)).collect()
    }
}

fn label_names(sample: &str) -> Vec<String> {
    let inside = sample.split_once('{').map_or("", |(_, labels)| labels);
    let names = inside
        .split(',')
        .filter_map(|label| Some(label.split_once('=')?.0));
    let names = names.filter(|name| *name != "le");
    names.map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn the_port_of_operators_serves_probes_metrics_and_calls_about_the_cluster_only() {
    let address = free_address();
    let _node = Node::start_with(|config| config.admin_listen = Some(address)).await;
    let address = address.to_string();
    for (path, expected) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/x", 404),
    ] {
        assert_eq!(get(&address, path).await.0, expected, "{path}");
    }
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = endpoint.connect().await.unwrap();
    let mut cluster = ClusterServiceClient::new(channel.clone());
    let status = cluster.get_status(v1::GetStatusRequest::default()).await;
    assert_eq!(status.unwrap().into_inner().nodes.len(), 1);
    let mut keys = KvServiceClient::new(channel);
    let read = keys.get_key(v1::GetKeyRequest::default()).await;
    assert!(read.is_err(), "{read:?}");
}

async fn register(node: &Node, action: &str) {
    let action = v1::RegisterActionRequest {
        name: action.to_owned(),
        ..v1::RegisterActionRequest::default()
    };
    node.actions().register_action(action).await.unwrap();
}

async fn invoke(node: &Node, action: &str) {
    let invocation = v1::InvokeActionRequest {
        name: action.to_owned(),
        ..v1::InvokeActionRequest::default()
    };
    node.actions().invoke_action(invocation).await.unwrap();
}

/// Makes a worker for the action take a task.
async fn take_task(node: &Node, action: &str) {
    let process = v1::Process {
        name: action.to_owned(),
        kind: v1::ProcessKind::Action.into(),
    };
    let worker = v1::RegisterRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        processes: vec![process],
        ..v1::RegisterRequest::default()
    };
    node.workers().register(worker).await.unwrap();
    let poll = v1::AwaitRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        actions: vec![action.to_owned()],
        slots: 1,
        ..v1::AwaitRequest::default()
    };
    let response = node.workers().r#await(poll).await.unwrap().into_inner();
    assert_eq!(response.tasks.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_the_catalogue_is_exposed_with_its_labels_and_no_other_is() {
    let nodes = Node::start_cluster().await;
    for action in ["charge", "ship"] {
        register(&nodes[0], action).await;
        invoke(&nodes[0], action).await;
    }
    take_task(&nodes[0], "charge").await;
    invoke(&nodes[0], "charge").await;
    let leader = until("a node that leads and has the task", async || {
        for node in &nodes {
            let page = Page::of(node).await;
            if page.value("flotilla_raft_is_leader") == 1.0 {
                return Some(page);
            }
        }
        None
    })
    .await;
    // Nodes without TLS have no certificate to report, and these have sent no backup and have no issuers.
    let absent = [
        "flotilla_tls_certificate_expiry_timestamp_seconds",
        "flotilla_backup_completed_timestamp_seconds",
        "flotilla_oidc_tokens_total",
        "flotilla_oidc_key_fetches_total",
        "flotilla_oidc_keys_age_seconds",
    ];
    let is_exposed = |metric: &&Metric| !absent.contains(&metric.name);
    for metric in METRICS.iter().filter(is_exposed) {
        let declared = leader.types.get(metric.name).map(String::as_str);
        assert_eq!(declared, Some(metric.kind.as_str()), "{}", metric.name);
        let expected: Vec<String> = metric.labels.iter().map(ToString::to_string).collect();
        let found = leader.labels(metric);
        assert_eq!(found, BTreeSet::from([expected]), "{}", metric.name);
    }
    assert_eq!(leader.types.len(), METRICS.len());
    let of = |name: &str, action: &str| {
        leader.value(&format!(
            "{name}{{namespace=\"default\",action=\"{action}\"}}"
        ))
    };
    assert_eq!(of("flotilla_tasks_leased", "charge"), 1.0);
    assert_eq!(of("flotilla_tasks_ready", "charge"), 1.0);
    assert_eq!(of("flotilla_tasks_ready", "ship"), 1.0);
    assert_eq!(of("flotilla_tasks_unserved", "ship"), 1.0);
    assert_eq!(leader.value("flotilla_action_runs_total"), 3.0);
    assert_eq!(leader.value("flotilla_raft_members{role=\"voter\"}"), 3.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_counted_by_kind_by_code_and_by_method() {
    let node = Node::start().await;
    let before = Page::of(&node).await;
    node.try_run(start_of("missing", "")).await.unwrap_err();
    let method = "flotilla.v1.WorkflowService/StartRun";
    let requests =
        format!("flotilla_grpc_requests_total{{method=\"{method}\",code=\"not_found\"}}");
    // For a moment, the node sends the same page again.
    let after = until("a page that is newer than the call", async || {
        let page = Page::of(&node).await;
        (page.samples.get(&requests) == Some(&1.0)).then_some(page)
    })
    .await;
    for (sample, by) in [
        (
            "flotilla_commands_applied_total{kind=\"start_run\",result=\"rejected\"}",
            1.0,
        ),
        (
            "flotilla_commands_applied_total{kind=\"start_run\",result=\"accepted\"}",
            0.0,
        ),
        (
            "flotilla_command_rejections_total{code=\"workflow_not_found\"}",
            1.0,
        ),
    ] {
        assert_eq!(after.value(sample) - before.value(sample), by, "{sample}");
    }
    let times = format!("flotilla_grpc_request_duration_seconds_count{{method=\"{method}\"}}");
    assert_eq!(after.value(&times), 1.0);
    let syncs = "flotilla_raft_log_fsync_duration_seconds_count";
    assert!(after.value(syncs) > before.value(syncs));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_for_its_cluster_lives_and_is_not_ready_and_says_why() {
    let node = Node::start_without_quorum().await;
    let (status, body) = get(&node.http_address, "/livez").await;
    assert_eq!((status, body.as_str()), (200, r#"{"status":"live"}"#));
    let (status, body) = get(&node.http_address, "/readyz").await;
    assert_eq!(status, 503);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"]["code"], "node_not_member");
    let page = Page::of(&node).await;
    assert_eq!(page.value("flotilla_ready"), 0.0);
    assert_eq!(page.value("flotilla_raft_leader_id"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_start_takes_long_lives_and_says_that_it_starts_until_it_is_given_up() {
    let (config, data) = Node::start().await.condemn().await;
    let address = config.http_listen.to_string();
    let starting = tokio::spawn(Server::start(config));
    until("the node to listen", async || {
        TcpStream::connect(&address).await.ok()
    })
    .await;
    let (status, body) = get(&address, "/livez").await;
    assert_eq!((status, body.as_str()), (200, r#"{"status":"live"}"#));
    for path in ["/readyz", "/metrics", "/v1/tasks/1/report"] {
        let (status, body) = get(&address, path).await;
        assert_eq!(status, 503, "{path}");
        assert!(body.contains("starting"), "{body}");
    }
    starting.abort();
    let ended = starting.await.err().expect("it has not started");
    assert!(ended.is_cancelled(), "{ended}");
    // The next process that starts it finds the directory free.
    RocksStorage.lock(&data.path().join("node")).unwrap();
}

/// The index of the node that leads.
async fn leader_of(nodes: &[Node]) -> usize {
    until("a node that leads", async || {
        for (place, node) in nodes.iter().enumerate() {
            if Page::of(node).await.value("flotilla_raft_is_leader") == 1.0 {
                return Some(place);
            }
        }
        None
    })
    .await
}

/// Waits until the node, whose peers are gone, reports that it is not ready, and why.
async fn await_unready(node: &Node) {
    let body = until("the node to find out", async || {
        let (status, body) = get(&node.http_address, "/readyz").await;
        (status == 503).then_some(body)
    })
    .await;
    assert!(body.contains("no_leader"), "{body}");
    let page = until("a page that is newer", async || {
        let page = Page::of(node).await;
        (page.value("flotilla_ready") == 0.0).then_some(page)
    })
    .await;
    assert_eq!(page.value("flotilla_raft_leader_id"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_is_left_alone_is_no_longer_ready_and_refuses_calls_immediately() {
    let mut nodes = Node::start_cluster().await;
    let leader = leader_of(&nodes).await;
    let follower = nodes.remove((leader + 1) % nodes.len());
    assert_eq!(get(&follower.http_address, "/readyz").await.0, 200);
    for other in nodes {
        other.stop().await.0.unwrap();
    }
    await_unready(&follower).await;
    // Without a deadline: a caller may have other nodes to try.
    let no_leader = (Code::Unavailable, "no_leader".to_owned());
    let start = follower.try_run(start_of("approval", "")).await;
    assert_eq!(refused(start), no_leader);
    let request = v1::GetRunRequest {
        run_id: "wfrun-1".to_owned(),
        ..Default::default()
    };
    assert_eq!(
        refused(follower.workflows().get_run(request).await),
        no_leader
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_has_lost_its_quorum_is_no_longer_ready_and_accepts_no_commands() {
    let mut nodes = Node::start_cluster().await;
    let leader = leader_of(&nodes).await;
    let leader = nodes.swap_remove(leader);
    assert_eq!(get(&leader.http_address, "/readyz").await.0, 200);
    for follower in nodes {
        follower.stop().await.0.unwrap();
    }
    await_unready(&leader).await;
    let start = leader.try_run(start_of("approval", "")).await;
    assert_eq!(refused(start), (Code::Unavailable, "no_leader".to_owned()));
    let mut health = HealthClient::new(leader.channel());
    let request = HealthCheckRequest::default();
    let mut updates = health.watch(request).await.unwrap().into_inner();
    while updates.message().await.unwrap().unwrap().status() == ServingStatus::Serving {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_is_no_longer_ready_while_it_finishes_its_work() {
    let node = Node::start().await;
    let (status, body) = get(&node.http_address, "/readyz").await;
    assert_eq!((status, body.as_str()), (200, r#"{"status":"ready"}"#));
    // A stream that its client does not end keeps the node running for a while.
    let mut health = HealthClient::new(node.channel());
    let request = HealthCheckRequest::default();
    let mut updates = health.watch(request).await.unwrap().into_inner();
    while updates.message().await.unwrap().unwrap().status() != ServingStatus::Serving {}
    let address = node.http_address.clone();
    let stopping = tokio::spawn(node.stop());
    while updates.message().await.unwrap().unwrap().status() == ServingStatus::Serving {}
    let (status, body) = get(&address, "/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("shutting_down"), "{body}");
    assert_eq!(get(&address, "/livez").await.0, 200);
    drop((updates, health));
    stopping.await.unwrap().0.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stops_hands_over_before_its_streams_end() {
    let mut nodes = Node::start_cluster().await;
    let leader = leader_of(&nodes).await;
    let leader = nodes.swap_remove(leader);
    // Its client does not end it, so the node waits for it.
    let mut health = HealthClient::new(leader.channel());
    let request = HealthCheckRequest::default();
    let mut updates = health.watch(request).await.unwrap().into_inner();
    let stopping = tokio::spawn(leader.stop());
    let ended = async { while let Ok(Some(_)) = updates.message().await {} };
    tokio::select! {
        _ = leader_of(&nodes) => {}
        () = ended => panic!("the stream has ended before another node leads"),
    }
    drop((updates, health));
    stopping.await.unwrap().0.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_node_says_so_and_what_to_do_until_it_has_stopped() {
    let admin = free_address();
    let mut nodes = Node::start_cluster_with(|config| {
        config.admin_listen = (config.node_id == 3).then_some(admin);
    })
    .await;
    let removed = nodes.remove(2);
    // A stream that its client does not end keeps the node running for a while.
    let mut health = HealthClient::new(removed.channel());
    let request = HealthCheckRequest::default();
    let updates = health.watch(request).await.unwrap().into_inner();
    let request = v1::RemoveNodeRequest { node_id: 3 };
    nodes[0].cluster().remove_node(request).await.unwrap();
    let body = until("the node to find out", async || {
        let (status, body) = get(&removed.http_address, "/readyz").await;
        (status == 503 && body.contains("removed")).then_some(body)
    })
    .await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"]["code"], "node_removed");
    let hint = body["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("a new node id"), "{hint}");
    let endpoint = Endpoint::from_shared(format!("http://{admin}")).unwrap();
    let mut cluster = ClusterServiceClient::new(endpoint.connect().await.unwrap());
    let status = cluster.get_status(v1::GetStatusRequest::default()).await;
    let status = status.unwrap().into_inner();
    let expected = format!("node 3 was removed from its cluster; {hint}");
    assert_eq!(status.stop_reason, expected);
    assert_eq!(status.awaited, "");
    drop((updates, health, cluster));
    let ended = removed.stop().await.0.expect_err("it was removed");
    assert!(ended.is_removal(), "{ended}");
}

/// The ids of the nodes that warn of their timing, over HTTP and with their metrics.
async fn warning_of_timing(nodes: &[Node]) -> (Vec<u64>, Vec<u64>) {
    let (mut by_probe, mut by_metric) = (Vec::new(), Vec::new());
    for (node_id, node) in (1..).zip(nodes) {
        let (status, body) = get(&node.http_address, "/readyz").await;
        if status == 200 && body.contains("`election_ms`") {
            by_probe.push(node_id);
        }
        if Page::of(node).await.value("flotilla_raft_timing_differs") == 1.0 {
            by_metric.push(node_id);
        }
    }
    (by_probe, by_metric)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_timing_than_its_leader_is_ready_and_warns() {
    let nodes = Node::start_cluster_with(|config| {
        config.election_ms = if config.node_id == 3 { 450 } else { 300 };
    })
    .await;
    until("the followers to compare", async || {
        let status = nodes[0].cluster().get_status(v1::GetStatusRequest {}).await;
        let status = status.unwrap().into_inner();
        let timings: Vec<u64> = status.nodes.iter().map(|node| node.election_ms).collect();
        let expected = match status.leader_id? {
            3 => vec![1, 2],
            _ => vec![3],
        };
        let found = warning_of_timing(&nodes).await;
        let is_known = timings == [300, 300, 450] && found == (expected.clone(), expected);
        is_known.then_some(())
    })
    .await;
}
