//! Quotas, over HTTP as any client sees them (X37–X40).

use crate::node::{APPROVAL, Node};
use crate::wait::until;
use crate::web::{call, call_with, get};
use serde_json::json;
use std::time::Instant;

const QUOTAS: &str = "/v1/namespaces/default/quotas";
const START: &str = "POST /v1/namespaces/default/workflows/approval/runs";

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_start_is_429_and_names_the_quota() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let address = node.http_address.as_str();
    let limits = json!({"limits": {"starts_per_minute": 2, "open_runs": 1}, "any_version": true});
    let set = call_with(address, &format!("PUT {QUOTAS}"), &limits.to_string()).await;
    assert_eq!(set.status, 200, "{set:?}");

    let started = call_with(address, START, r#"{"run_id": "r1"}"#).await;
    assert_eq!(started.status, 201, "{started:?}");
    let refused = call_with(address, START, "{}").await;
    assert_eq!(refused.problem(), (429, "quota_exceeded"));
    let members = |body: &serde_json::Value| {
        ["dimension", "limit", "used", "scope", "retry_after_ms"].map(|key| body[key].clone())
    };
    assert_eq!(
        members(&refused.body),
        [
            json!("open_runs"),
            json!(1),
            json!(1),
            json!("default"),
            json!(null)
        ]
    );
    assert!(!refused.headers.contains_key("retry-after"), "{refused:?}");

    let cancelled = call(
        address,
        "POST /v1/namespaces/default/runs/r1/cancel",
        &[],
        "",
    )
    .await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let started = call_with(address, START, "{}").await;
    assert_eq!(started.status, 201, "{started:?}");
    let refused = call_with(address, START, "{}").await;
    assert_eq!(refused.problem(), (429, "quota_exceeded"));
    assert_eq!(
        refused.body["dimension"], "starts_per_minute",
        "{refused:?}"
    );
    let delay_ms = refused.body["retry_after_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&delay_ms), "{refused:?}");
    let seconds = delay_ms.div_ceil(1_000).to_string();
    assert_eq!(refused.headers["retry-after"], seconds);

    let usage = call(address, "GET /v1/namespaces/default/usage", &[], "").await;
    let dimensions = usage.body["dimensions"].as_array().unwrap();
    let of = |name: &str| {
        let mut found = dimensions.iter();
        found.find(|one| one["dimension"] == name).unwrap().clone()
    };
    assert_eq!(of("open_runs")["used"], 1, "{usage:?}");
    assert_eq!(of("starts_per_minute")["used"], 2);
    assert_eq!(of("workflows")["limit"], json!(null));
}

/// How many commands the engine has refused because of their quota of open runs.
async fn refused_by_the_engine(node: &Node) -> u64 {
    let (_, page) = get(&node.http_address, "/metrics").await;
    let sample = "flotilla_quota_refusals_total{dimension=\"open_runs\"} ";
    let mut lines = page.lines();
    let count = lines.find_map(|line| line.strip_prefix(sample)).unwrap();
    count.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_at_its_limit_costs_few_entries_and_its_retries_are_answered() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let address = node.http_address.as_str();
    let limits = json!({"limits": {"open_runs": 1}, "any_version": true}).to_string();
    call_with(address, &format!("PUT {QUOTAS}"), &limits).await;
    let start = async |key: &str| {
        let headers = [
            "content-type: application/json",
            &format!("idempotency-key: {key}"),
        ];
        call(address, START, &headers, "{}").await
    };
    let started = start("first").await;
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(refused_by_the_engine(&node).await, 0);
    assert_eq!(start("second").await.problem(), (429, "quota_exceeded"));
    let began = Instant::now();
    for number in 0..20 {
        let refused = start(&format!("more-{number}")).await;
        assert_eq!(refused.problem(), (429, "quota_exceeded"));
        assert_eq!(start("first").await.body, started.body);
    }
    // A refusal is kept for a second.
    let refused_max = 2 + began.elapsed().as_secs();
    // The page of metrics may be a moment old.
    let refused = until("a refusal to be counted", async || {
        let refused = refused_by_the_engine(&node).await;
        (refused > 0).then_some(refused)
    })
    .await;
    assert!(refused <= refused_max, "{refused}");
    // Room is found when there is some, although a refusal is kept.
    let run = started.body["run_id"].as_str().unwrap();
    let cancel = format!("POST /v1/namespaces/default/runs/{run}/cancel");
    assert_eq!(call(address, &cancel, &[], "").await.status, 200);
    assert_eq!(start("second").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_replaced_only_by_who_has_read_it() {
    let node = Node::start().await;
    let address = node.http_address.as_str();
    let put = async |path: &str, headers: &[&str], limits: serde_json::Value| {
        let mut headers = headers.to_vec();
        headers.push("content-type: application/json");
        let body = json!({"limits": limits}).to_string();
        call(address, &format!("PUT {path}"), &headers, &body).await
    };
    let none = put(QUOTAS, &[], json!({"open_runs": 5})).await;
    assert_eq!(none.problem(), (428, "precondition_required"));
    let first = put(QUOTAS, &["if-none-match: *"], json!({"open_runs": 5})).await;
    assert_eq!(first.status, 200, "{first:?}");
    let tag = format!("if-match: {}", first.headers["etag"]);
    let again = put(QUOTAS, &["if-none-match: *"], json!({"open_runs": 6})).await;
    assert_eq!(again.problem(), (412, "quota_version_mismatch"));
    let second = put(QUOTAS, &[&tag], json!({"open_runs": 6})).await;
    assert_eq!(second.body["limits"], json!({"open_runs": 6}), "{second:?}");
    let third = put(QUOTAS, &[&tag], json!({"open_runs": 7})).await;
    assert_eq!(third.problem(), (412, "quota_version_mismatch"));
    let read = call(address, &format!("GET {QUOTAS}"), &[], "").await;
    assert_eq!(read.headers["etag"], second.headers["etag"]);

    let absent = &["if-none-match: *"][..];
    let wrong = put("/v1/quota-defaults", absent, json!({"open_run": 5})).await;
    assert_eq!(wrong.problem(), (400, "invalid_argument"));
    let detail = wrong.body["detail"].as_str().unwrap();
    assert!(detail.contains("did you mean `open_runs`?"), "{detail}");
    for limit in [json!(-1), json!(1.5), json!("many")] {
        let refused = put("/v1/quota-defaults", absent, json!({"open_runs": limit})).await;
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    let tree = put("/v1/trees/acme/quotas", absent, json!({"namespaces": 1})).await;
    assert_eq!(tree.body["scope"], "acme.*", "{tree:?}");
    let create = async |name: &str| {
        let line = format!("PUT /v1/namespaces/{name}");
        call_with(address, &line, "{}").await
    };
    assert_eq!(create("acme.one").await.status, 201);
    assert_eq!(create("acme.two").await.problem(), (429, "quota_exceeded"));
    let usage = call(address, "GET /v1/trees/acme/usage", &[], "").await;
    let dimensions = usage.body["dimensions"].as_array().unwrap();
    let namespaces = json!({"dimension": "namespaces", "limit": 1, "used": 1});
    assert!(dimensions.contains(&namespaces), "{usage:?}");
    let missing = put(
        "/v1/namespaces/other/quotas",
        absent,
        json!({"open_runs": 5}),
    )
    .await;
    assert_eq!(missing.problem(), (404, "namespace_not_found"));
}
