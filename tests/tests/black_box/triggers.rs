//! Triggers start one run for each record, whichever node leads.

use crate::calls::{self, insist};
use crate::counter::Counter;
use crate::files::{example, fixture};
use crate::wire;
use flotilla_client::{Client, v1};
use flotilla_tests::{Cluster, DevNode, Flo, TIMEOUT, wait_until};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const RECORDS: u64 = 2_000;
/// The number of concurrent calls.
const CALLS: usize = 16;
/// The leader is killed each time this many further records are appended, and restarted some records later.
const KILL_EVERY: u64 = 450;
const BACK_AFTER: u64 = 50;

#[test]
fn each_record_starts_one_run_while_leaders_are_killed() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let _ = flo.text(&["stream", "create", "orders", "--partitions", "4"]);
    let _ = flo.text(&["workflow", "create", "-f", &fixture("following.yaml")]);

    let runtime = wire::runtime();
    let counter = Arc::new(Counter::default());
    let appending = runtime.spawn(append_all(cluster.endpoints(), counter.clone()));
    for kill in 1..=RECORDS / KILL_EVERY {
        counter.await_count(kill * KILL_EVERY);
        let leader = cluster.leader();
        cluster.kill(leader);
        counter.await_count(kill * KILL_EVERY + BACK_AFTER);
        cluster.restart(leader);
        cluster.await_health();
    }
    runtime.block_on(appending).expect("all is appended");
    let stream = flo.json(&["stream", "info", "orders"]);
    assert_eq!(stream["record_count"], RECORDS, "each once: {stream}");
    // Once more, without appends.
    let leader = cluster.leader();
    cluster.kill(leader);
    let trigger = await_trigger(&flo, "following", |trigger| trigger["lag"] == 0);
    cluster.restart(leader);
    assert_eq!(trigger["run_count"], RECORDS, "{trigger}");
    assert_eq!(trigger["record_count"], RECORDS, "{trigger}");
    assert_eq!(trigger["refused_count"], 0, "{trigger}");
    assert_eq!(trigger["lost_count"], 0, "{trigger}");

    let client = {
        let _inside = runtime.enter();
        calls::client(&cluster.endpoints(), 0)
    };
    let started = runtime.block_on(inputs(&client));
    let expected: BTreeMap<u64, u64> = (0..RECORDS).map(|record| (record, 1)).collect();
    assert_eq!(started, expected, "each record has one run");
    let _ = cluster.agreement();
}

/// Appends the records through all nodes, each until its append is acknowledged.
async fn append_all(endpoints: Vec<String>, counter: Arc<Counter>) {
    let clients: Vec<Client> = (0..endpoints.len())
        .map(|turn| calls::client(&endpoints, turn))
        .collect();
    let append = |(record, client): (u64, Client)| {
        let counter = counter.clone();
        async move {
            let ids = insist(|| client.append_records(appending(record)))
                .await
                .ids;
            assert_eq!(ids.len(), 1, "{ids:?}");
            counter.add();
        }
    };
    stream::iter((0..RECORDS).zip(clients.into_iter().cycle()))
        .map(append)
        .buffer_unordered(CALLS)
        .collect::<Vec<()>>()
        .await;
}

/// The append of a record: the same request in every attempt.
fn appending(record: u64) -> v1::AppendRecordsRequest {
    let payload = json!({"order": record}).to_string();
    v1::AppendRecordsRequest {
        stream: "orders".to_owned(),
        records: vec![v1::NewRecord {
            payload: payload.into(),
            partition_key: record.to_string(),
            ..v1::NewRecord::default()
        }],
        request_id: u128::from(record + 1).to_be_bytes().to_vec().into(),
        ..v1::AppendRecordsRequest::default()
    }
}

/// How many runs started with each record.
async fn inputs(client: &Client) -> BTreeMap<u64, u64> {
    let rows = calls::runs(client, "following").await;
    let order = |row: v1::RunRow| async move {
        assert_eq!(row.triggered_by, "trigger", "{row:?}");
        let run = calls::run(client, &row.run_id).await;
        let input: Value = serde_json::from_slice(&run.input).expect("an input is JSON");
        input["order"].as_u64().expect("a number")
    };
    let orders = stream::iter(rows).map(order).buffer_unordered(CALLS);
    orders
        .fold(BTreeMap::new(), |mut counts, order| async move {
            *counts.entry(order).or_default() += 1;
            counts
        })
        .await
}

#[test]
fn a_trigger_waits_for_its_stream_and_shows_itself_to_people() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = example("workflows/order-processor.yaml");
    let created = flo.run(&["workflow", "create", "-f", &file]);
    let warning = "warning[E507]: stream \"orders\" does not exist yet in namespace \"prod\"";
    assert!(created.stderr.contains(warning), "{}", created.show());
    let show = ["workflow", "trigger", "order-processor"];
    assert_eq!(flo.json(&show)["triggers"][0]["state"], "no_stream");

    let append = ["-n", "prod", "stream", "append", "orders", "{}", "not JSON"];
    let _ = flo.text(&append);
    let trigger = await_trigger(&flo, "order-processor", |trigger| trigger["run_count"] == 2);
    assert_eq!(trigger["state"], "active", "{trigger}");
    let shown = flo.text(&show);
    assert!(shown.contains("orders in prod"), "{shown}");
    assert!(shown.contains("wf-orders (shared)"), "{shown}");
    assert!(shown.contains("2 of 2 records"), "{shown}");
    let workflow = flo.json(&["workflow", "show", "order-processor"]);
    assert_eq!(workflow["triggers"], json!([trigger]), "{workflow}");

    let runs = flo.json(&["workflow", "runs", "--workflow", "order-processor"]);
    let items = runs["items"].as_array().expect("a list has items");
    let input = |run: &Value| {
        assert_eq!(run["triggered_by"], "trigger", "{run}");
        let run_id = run["run_id"].as_str().expect("a run has an id");
        flo.json(&["workflow", "status", run_id])["input"].clone()
    };
    // The newest first.
    let inputs: Vec<Value> = items.iter().map(input).collect();
    assert_eq!(inputs, [json!("not JSON"), json!({})]);

    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    flo.refused(&["workflow", "trigger", "parked"])
        .expect(1, "trigger_not_found");
    flo.refused(&["workflow", "trigger", "missing"])
        .expect(1, "workflow_not_found");
}

#[test]
fn several_triggers_start_runs_for_the_records_that_they_take() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = fixture("listening.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let payments = ["{\"total\": 50}", "{\"total\": 500}", "cash"];
    for payment in payments {
        let _ = flo.text(&["stream", "append", "payments", payment]);
    }
    let _ = flo.text(&["stream", "append", "refunds", "{\"total\": 5}"]);
    let paid = await_trigger(&flo, "listening", |trigger| trigger["lag"] == 0);
    assert_eq!(paid["stream"], "payments", "{paid}");
    assert_eq!(paid["when"], "record.payload.total > 100", "{paid}");
    let counts = ["run_count", "skipped_count", "refused_count"].map(|count| &paid[count]);
    assert_eq!(counts, [1, 1, 1], "{paid}");
    let dead = flo.json(&["stream", "read", "payments.wf-listening.dlq"]);
    let reason = dead["items"][0]["headers"]["flo-reason"].to_string();
    assert!(reason.contains("record.payload.total > 100"), "{dead}");

    wait_until("two runs", TIMEOUT, || {
        let runs = flo.json(&["workflow", "runs", "--workflow", "listening"]);
        match runs["items"].as_array().map(Vec::len) {
            Some(2) => Ok(()),
            _ => Err(runs.to_string()),
        }
    });
    let shown = flo.text(&["workflow", "trigger", "listening"]);
    assert!(shown.contains("skipped     1 record\n"), "{shown}");
    assert!(shown.contains("refunds in default"), "{shown}");
}

/// Waits until a workflow's first trigger matches, and returns it.
fn await_trigger(flo: &Flo, workflow: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
    wait_until("the trigger to match", TIMEOUT, || {
        let answer = flo.run(&["-o", "json", "workflow", "trigger", workflow]);
        let mut shown: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let trigger = shown["triggers"][0].take();
        if answer.code == 0 && is_reached(&trigger) {
            return Ok(trigger);
        }
        Err(answer.show())
    })
}
