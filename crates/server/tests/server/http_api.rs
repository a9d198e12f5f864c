//! The API over HTTP, as any client sees it (H1–H15).

use crate::access::create_token;
use crate::node::{APPROVAL, Node};
use crate::wait::until;
use crate::web::{call, call_with, events};
use serde_json::json;
use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Builder;

const YAML: &[&str] = &["content-type: application/yaml"];
const JSON: &str = "content-type: application/json";

const PAYMENT: &str = r#"
kind: Workflow
name: payment
version: "1.0.0"
start:
  run: "@actions/charge"
  input: {amount: "$.input.amount"}
  transitions: {success: flo.Completed, failure: flo.Failed}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_driven_over_http_at_any_node() {
    let nodes = Node::start_cluster().await;
    let turn = Cell::new(0);
    let next = || {
        turn.set(turn.get() + 1);
        nodes[turn.get() % 3].http_address.as_str()
    };
    let created = call(next(), "POST /v1/namespaces/shop/workflows", YAML, PAYMENT).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(
        created.headers["location"],
        "/v1/namespaces/shop/workflows/payment"
    );
    assert_eq!(created.body["revision"], 1);
    let again = call(next(), "POST /v1/namespaces/shop/workflows", YAML, PAYMENT).await;
    assert_eq!((again.status, &again.body["created"]), (200, &json!(false)));

    let action = call_with(next(), "PUT /v1/namespaces/shop/actions/charge", "{}").await;
    assert_eq!(action.status, 200, "{action:?}");
    let worker = "/v1/namespaces/shop/workers/w1";
    let body = r#"{"incarnation": "18446744073709551615"}"#;
    let registered = call_with(next(), &format!("PUT {worker}"), body).await;
    assert_eq!(registered.status, 200, "{registered:?}");

    let line = "POST /v1/namespaces/shop/workflows/payment/runs";
    let started = call_with(
        next(),
        line,
        r#"{"input": {"amount": 1.50}, "run_id": "r1"}"#,
    )
    .await;
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(started.headers["location"], "/v1/namespaces/shop/runs/r1");

    let poll = r#"{"incarnation": "18446744073709551615", "actions": ["charge"], "slots": 1}"#;
    let polled = call_with(next(), &format!("POST {worker}/await"), poll).await;
    let task = &polled.body["tasks"][0];
    assert_eq!(task["input"].to_string(), r#"{"amount":1.5}"#, "{polled:?}");
    let touch = async |touch: serde_json::Value| {
        let touches = json!({"touches": [touch]}).to_string();
        let touched = call_with(next(), "POST /v1/namespaces/shop/tasks/touch", &touches).await;
        touched.body["results"][0].clone()
    };
    let token = &task["task_token"];
    let touched = touch(json!({"task_token": token})).await;
    assert_eq!(touched["error"]["code"], "invalid_argument", "{touched}");
    let touched = touch(json!({"task_token": token, "extend_ms": 60_000})).await;
    assert!(touched["lease_expires_at_ms"].is_u64(), "{touched}");
    let completion = json!({
        "completions": [{
            "task_token": task["task_token"],
            "output": {"paid": true},
        }],
    });
    let line = "POST /v1/namespaces/shop/tasks/complete";
    let completed = call_with(next(), line, &completion.to_string()).await;
    assert_eq!(completed.status, 200, "{completed:?}");

    let run = call(next(), "GET /v1/namespaces/shop/runs/r1", &[], "").await;
    assert_eq!(run.body["status"], "completed", "{run:?}");
    assert_eq!(run.body["output"], json!({"paid": true}));
    assert_eq!(run.body["error"], json!(null));
    let line = "GET /v1/namespaces/shop/runs/r1/history?after_seq=1&limit=1";
    let history = call(next(), line, &[], "").await;
    assert_eq!(history.body["events"][0]["seq"], 2, "{history:?}");
    let line = "GET /v1/namespaces/shop/runs?status=completed&where=workflow%20%3D%20'payment'";
    let listed = call(next(), line, &[], "").await;
    assert_eq!(listed.body["items"][0]["run_id"], "r1", "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_the_same_key_is_the_same_request() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let send = async |key: &str, body: &str| {
        let key = format!("idempotency-key: {key}");
        call(&node.http_address, START, &[JSON, &key], body).await
    };
    let first = send("order-7", "{}").await;
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(send("order-7", "{}").await.body, first.body);
    let other = send("order-7", r#"{"input": {"a": 1}}"#).await;
    assert_eq!(other.problem(), (409, "request_id_reused"));
    assert_ne!(
        send("order-8", "{}").await.body["run_id"],
        first.body["run_id"]
    );
    assert_eq!(send("", "{}").await.problem(), (400, "invalid_argument"));
    // The cluster may have forgotten requests with keys that are an hour old.
    let made_at = SystemTime::now() - Duration::from_secs(3_600);
    let made_at_ms = made_at.duration_since(UNIX_EPOCH).unwrap().as_millis();
    for number in 0..8 {
        let key =
            Builder::from_unix_timestamp_millis(made_at_ms.try_into().unwrap(), &[number; 10]);
        let key = key.into_uuid().to_string();
        let late = send(&key, "{}").await;
        assert_eq!(late.problem(), (409, "request_too_old"), "{key}");
        assert!(late.body["cluster_ms"].is_u64(), "{late:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_keys_are_bytes() {
    let node = Node::start().await;
    let http = node.http_address.as_str();
    let line = "PUT /v1/namespaces/default/kv/config/limit";
    let raw = &["content-type: application/octet-stream"];
    assert_eq!(call(http, line, raw, "half {").await.status, 200);
    let line = "GET /v1/namespaces/default/kv/config/limit";
    let found = call(http, line, &[], "").await;
    assert_eq!(found.body["item"]["value_base64"], "aGFsZiB7", "{found:?}");
    let line = "PUT /v1/namespaces/default/kv/config/limit";
    assert_eq!(
        call_with(http, line, r#"{"value": {"a": 1.0}}"#)
            .await
            .status,
        200
    );
    let scanned = call(http, "GET /v1/namespaces/default/kv?prefix=config", &[], "").await;
    assert_eq!(
        scanned.body["items"][0]["value"].to_string(),
        r#"{"a":1.0}"#
    );
}

const START: &str = "POST /v1/namespaces/default/workflows/approval/runs";

/// A request, and the status and the code with which it is refused.
type Refused = (
    &'static str,
    &'static [&'static str],
    &'static str,
    (u16, &'static str),
);

const INVALID: (u16, &str) = (400, "invalid_argument");
const UNSUPPORTED: (u16, &str) = (415, "media_type_unsupported");
const NO_PATH: (u16, &str) = (404, "path_not_found");

const REFUSED: [Refused; 23] = [
    (
        "GET /v1/namespaces/default/runs/nope",
        &[],
        "",
        (404, "run_not_found"),
    ),
    ("GET /v1/namespaces/default/runs/", &[], "", NO_PATH),
    ("GET /v1/namespaces//runs", &[], "", NO_PATH),
    ("GET /v1/nothing", &[], "", NO_PATH),
    ("PATCH /v1/cluster", &[], "", (405, "method_not_allowed")),
    ("GET /v1/namespaces/default/runs?limt=5", &[], "", INVALID),
    (
        "GET /v1/namespaces/default/runs?where=%28",
        &[],
        "",
        (400, "where_invalid"),
    ),
    (START, &[], "{}", UNSUPPORTED),
    (START, &["content-type: text/plain"], "{}", UNSUPPORTED),
    (START, &[JSON], "{", INVALID),
    (START, &[JSON], r#"{"namespace": "x"}"#, INVALID),
    (START, &[JSON, "flo-timeout-ms: 0"], "{}", INVALID),
    (
        "POST /v1/namespaces/default/cache-invalidations?event=x",
        &[JSON],
        "{}",
        INVALID,
    ),
    (
        "POST /v1/namespaces/default/workflows",
        YAML,
        "a: [",
        (422, "definition_invalid"),
    ),
    (
        "POST /v1/namespaces/default/runs/r/steps/s/decide",
        &[JSON],
        "{}",
        INVALID,
    ),
    ("GET /v1/namespaces/%FF/runs", &[], "", NO_PATH),
    (
        "PUT /v1/namespaces/default/kv/x/../y",
        &[JSON],
        r#"{"value": 1}"#,
        NO_PATH,
    ),
    ("PUT /v1/namespaces/default/kv/x", &[JSON], "{}", INVALID),
    (
        "POST /v1/cluster/nodes/0/drain",
        &[JSON],
        r#"{"node_id": 1}"#,
        INVALID,
    ),
    (
        "DELETE /v1/namespaces/default/actions/a/dead-letters?id=",
        &[],
        "",
        INVALID,
    ),
    (
        "POST /v1/namespaces/default/streams/s/trim",
        &[JSON],
        r#"{"before_id": "5-0", "keep_records": 10}"#,
        INVALID,
    ),
    (START, &[JSON, "content-encoding: gzip"], "{}", UNSUPPORTED),
    (
        "PUT /v1/namespaces/default/kv/x?value=1",
        &["content-type: application/octet-stream"],
        "2",
        INVALID,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let http = node.http_address.as_str();
    for (line, headers, body, expected) in REFUSED {
        let reply = call(http, line, headers, body).await;
        assert_eq!(reply.problem(), expected, "{line} {body}: {reply:?}");
        assert!(reply.headers.contains_key("x-request-id"), "{line}");
    }
    let large = format!("{{\"input\": \"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(
        call_with(http, START, &large).await.problem(),
        (413, "too_large")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_the_place_of_the_fault() {
    let node = Node::start().await;
    let wrong = call_with(&node.http_address, START, r#"{"inptu": {}}"#).await;
    assert_eq!(wrong.problem(), INVALID);
    assert_eq!(wrong.body["errors"][0]["pointer"], "/inptu", "{wrong:?}");
    let detail = wrong.body["detail"].as_str().unwrap();
    assert!(detail.contains("did you mean `input`?"), "{detail}");
    assert_eq!(wrong.headers["content-type"], "application/problem+json");
    assert_eq!(
        wrong.body["instance"],
        wrong.headers["x-request-id"].as_str()
    );
    let wrong = call_with(&node.http_address, START, r#"{"run_id": "a b"}"#).await;
    assert_eq!(wrong.body["errors"][0]["pointer"], "/run_id", "{wrong:?}");
    let line = "POST /v1/namespaces/default/workflows";
    let wrong = call(&node.http_address, line, YAML, "kind: Workflow\nname: 5").await;
    assert_eq!(wrong.problem(), (422, "definition_invalid"));
    assert!(wrong.body["errors"][0]["line"].is_u64(), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_cluster_needs_a_token_over_http_too() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let http = node.http_address.as_str();
    let (viewer, _) = create_token(&node, "viewer@*", None).await;
    let (operator, _) = create_token(&node, "operator@shop", None).await;
    let (root, _) = create_token(&node, "cluster-admin", None).await;
    let bearer = |token: &str| format!("authorization: Bearer {token}");
    let closed = call(
        http,
        "PUT /v1/auth/access",
        &[JSON, &bearer(&root)],
        r#"{"mode": "closed"}"#,
    )
    .await;
    assert_eq!(
        (closed.status, &closed.body["mode"]),
        (200, &json!("closed"))
    );
    let runs = "GET /v1/namespaces/default/runs";
    for (line, credential, expected) in [
        (runs, None, (401, "credential_missing")),
        (
            runs,
            Some("authorization: Basic eDp5".to_owned()),
            (401, "credential_malformed"),
        ),
        (runs, Some(bearer("flo_x")), (401, "credential_malformed")),
        // It has no grant in the namespace, and does not learn whether that exists.
        (runs, Some(bearer(&operator)), (404, "namespace_not_found")),
        (START, Some(bearer(&operator)), (403, "permission_denied")),
        (START, Some(bearer(&viewer)), (403, "permission_denied")),
        (runs, Some(bearer(&viewer)), (200, "none")),
        (START, Some(bearer(&root)), (201, "none")),
    ] {
        let headers: Vec<&str> = std::iter::once(JSON).chain(credential.as_deref()).collect();
        let body = if line == START { "{}" } else { "" };
        let reply = call(http, line, &headers, body).await;
        assert_eq!(
            reply.problem(),
            expected,
            "{line} {credential:?}: {reply:?}"
        );
        let challenge = reply.headers.get("www-authenticate").map(String::as_str);
        assert_eq!(challenge, (expected.0 == 401).then_some("Bearer"));
    }
    // Whether the caller has a credential comes before what is wrong with its body.
    let reply = call_with(http, START, "{").await;
    assert_eq!(reply.problem(), (401, "credential_missing"));
    // Before it is parsed: nothing of a large body is kept for a caller without a credential.
    let large = "x".repeat(200_000);
    let reply = call_with(http, START, &large).await;
    assert_eq!(reply.problem(), (401, "credential_missing"));
    let headers = [JSON, &bearer(&root)];
    let reply = call(http, START, &headers, &large).await;
    assert_eq!(reply.problem(), INVALID);
    for public in [
        "/livez",
        "/readyz",
        "/v1/openapi.json",
        "/v1/errors/overloaded",
    ] {
        assert_eq!(
            call(http, &format!("GET {public}"), &[], "").await.status,
            200
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_use_an_open_node() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let http = node.http_address.as_str();
    let cluster = "GET /v1/cluster";
    let (root, _) = create_token(&node, "cluster-admin", None).await;
    let token = format!("authorization: Bearer {root}");
    for (line, headers, expected) in [
        (
            cluster,
            &["host: evil.example.org"][..],
            (421, "host_unknown"),
        ),
        (cluster, &["host: localhost"], (200, "none")),
        (
            START,
            &["origin: http://evil.example.org"],
            (403, "origin_refused"),
        ),
        (
            START,
            &["sec-fetch-site: cross-site"],
            (403, "origin_refused"),
        ),
        (START, &["sec-fetch-site: none"], (201, "none")),
        (cluster, &["sec-fetch-site: cross-site"], (200, "none")),
        (START, &["host: evil.example.org", &token], (201, "none")),
    ] {
        let with_type: Vec<&str> = headers.iter().copied().chain([JSON]).collect();
        let body = if line == START { "{}" } else { "" };
        let reply = call(http, line, &with_type, body).await;
        assert_eq!(reply.problem(), expected, "{line} {headers:?}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_the_outcome_is_not_a_failure() {
    let node = Node::start_without_quorum().await;
    let headers = [JSON, "flo-timeout-ms: 300"];
    let reply = call(&node.http_address, START, &headers, "{}").await;
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.body["hint"].is_string(), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_answers_the_calls_in_progress() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let http = node.http_address.clone();
    let waiting =
        tokio::spawn(
            async move { call_with(&http, START, r#"{"run_id": "r1", "wait": true}"#).await },
        );
    until("the run to begin", async || {
        let line = "GET /v1/namespaces/default/runs/r1";
        let run = call(&node.http_address, line, &[], "").await;
        (run.body["status"] == "waiting").then_some(())
    })
    .await;
    node.stop().await.0.unwrap();
    let reply = waiting.await.unwrap();
    assert_eq!((reply.status, &reply.body["end"]), (201, &json!(null)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_by_events_over_any_node() {
    let nodes = Node::start_cluster().await;
    nodes[0].create(APPROVAL).await;
    let http = nodes[0].http_address.as_str();
    let started = call_with(http, START, r#"{"run_id": "r1"}"#).await;
    assert_eq!(started.status, 201, "{started:?}");
    let path = "/v1/namespaces/default/runs/r1/events";
    let follower = nodes[1].http_address.clone();
    let following = tokio::spawn(async move { events(&follower, path, "").await });
    let signal = "POST /v1/namespaces/default/runs/r1/signals";
    let body = "{\"type\": \"decision\", \"payload\": {\"ok\":\n true}}";
    assert_eq!(call_with(http, signal, body).await.status, 202);
    let (status, followed) = following.await.unwrap();
    assert_eq!(status, 200);
    let ids = |events: &[(String, Option<u64>, String)]| -> Vec<u64> {
        let history = events.iter().filter(|(name, _, _)| name == "history");
        history.filter_map(|(_, id, _)| *id).collect()
    };
    let (last, _) = followed.split_last().expect("events");
    let count = last.1.expect("an id");
    assert_eq!(
        ids(&followed),
        (1..=count).collect::<Vec<_>>(),
        "{followed:?}"
    );
    assert_eq!(last.0, "stream-end");
    let end: serde_json::Value = serde_json::from_str(&last.2).expect("JSON");
    assert_eq!(
        (&end["status"], &end["output"]),
        (&json!("completed"), &json!({"ok": true}))
    );

    let third = nodes[2].http_address.as_str();
    let resumed = events(third, path, "Last-Event-ID: 2\r\n").await;
    assert_eq!(ids(&resumed.1), (3..=count).collect::<Vec<_>>());
    let resumed = events(third, &format!("{path}?after_seq=2"), "").await;
    assert_eq!(ids(&resumed.1), (3..=count).collect::<Vec<_>>());
    let ended = events(third, path, &format!("Last-Event-ID: {count}\r\n")).await;
    assert_eq!(ended, (204, Vec::new()));
    let (_, reset) = events(third, path, "Last-Event-ID: 99999\r\n").await;
    assert_eq!(
        (reset[0].0.as_str(), ids(&reset)),
        ("reset", (1..=count).collect())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_of_a_run_can_wait_for_its_end() {
    let nodes = Node::start_cluster().await;
    nodes[0].create(APPROVAL).await;
    let http = nodes[0].http_address.as_str();
    assert_eq!(
        call_with(http, START, r#"{"run_id": "r1"}"#).await.status,
        201
    );
    let get = "GET /v1/namespaces/default/runs/r1";
    let open = call(http, &format!("{get}?wait_ms=1"), &[], "").await;
    assert_eq!(
        (open.status, &open.body["status"]),
        (200, &json!("waiting"))
    );
    assert!(open.headers["flo-now-ms"].parse::<u64>().is_ok());
    let follower = nodes[1].http_address.clone();
    let waiting =
        tokio::spawn(
            async move { call(&follower, &format!("{get}?wait_ms=300000"), &[], "").await },
        );
    let signal = "POST /v1/namespaces/default/runs/r1/signals";
    assert_eq!(
        call_with(http, signal, r#"{"type": "decision"}"#)
            .await
            .status,
        202
    );
    let ended = waiting.await.unwrap();
    assert_eq!(ended.body["status"], "completed", "{ended:?}");
    assert_eq!(ended.headers["flo-node"], "2");
    let long = call(http, &format!("{get}?wait_ms=300001"), &[], "").await;
    assert_eq!(long.problem(), INVALID);
    let missing = "GET /v1/namespaces/default/runs/r2?wait_ms=300000";
    assert_eq!(
        call(http, missing, &[], "").await.problem(),
        (404, "run_not_found")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_refused_before_the_first_one() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let http = node.http_address.as_str();
    let started = call_with(http, START, r#"{"run_id": "r1"}"#).await;
    assert_eq!(started.status, 201, "{started:?}");
    for (line, headers, expected) in [
        (
            "GET /v1/namespaces/default/runs/no/events",
            &[][..],
            (404, "run_not_found"),
        ),
        (
            "GET /v1/namespaces/default/runs/r1/events",
            &["last-event-id: x"],
            INVALID,
        ),
        (
            "GET /v1/namespaces/default/runs/r1/events",
            &["accept: application/json"],
            (406, "not_acceptable"),
        ),
        (
            "GET /v1/namespaces/default/runs/r1/events",
            &["authorization: Bearer flo_x"],
            (401, "credential_malformed"),
        ),
    ] {
        let reply = call(http, line, headers, "").await;
        assert_eq!(reply.problem(), expected, "{line} {headers:?}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_end_when_the_node_stops() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let http = node.http_address.clone();
    let started = call_with(&http, START, r#"{"run_id": "r1"}"#).await;
    assert_eq!(started.status, 201, "{started:?}");
    let path = "/v1/namespaces/default/runs/r1/events";
    let request = format!("GET {path} HTTP/1.0\r\nHost: {http}\r\n\r\n");
    let mut following = TcpStream::connect(&http).await.unwrap();
    following.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("event: ") {
        let mut part = [0; 4_096];
        let count = following.read(&mut part).await.unwrap();
        assert!(count > 0, "it is open: {text}");
        text.push_str(std::str::from_utf8(&part[..count]).unwrap());
    }
    node.stop().await.0.unwrap();
    following.read_to_string(&mut text).await.unwrap();
    let (_, last) = text.rsplit_once("event: ").unwrap();
    assert!(
        last.starts_with("error\n") && last.contains("shutting_down"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slashes_of_a_subject_in_a_path_are_encoded() {
    let node = Node::start().await;
    let http = node.http_address.as_str();
    let grants = r#"{"grants": ["cluster-viewer"]}"#;
    let raw = "PUT /v1/bindings/cert:uri:spiffe://shop/billing";
    let refused = call(http, raw, &[JSON], grants).await;
    assert_eq!(refused.problem(), (404, "path_not_found"));
    let encoded = "PUT /v1/bindings/cert:uri:spiffe:%2F%2Fshop%2Fbilling";
    let bound = call(http, encoded, &[JSON], grants).await;
    assert_eq!(bound.status, 201, "{bound:?}");
    let listed = call(http, "GET /v1/bindings", &[], "").await;
    let subject = &listed.body["items"][0]["subject"];
    assert_eq!(subject, "cert:uri:spiffe://shop/billing");
}
