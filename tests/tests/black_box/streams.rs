//! Streams and their consumers from the command line.

use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo, RecordCommand, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn records_are_appended_read_trimmed_and_counted() {
    let node = DevNode::start();
    let flo = node.flo();
    let append = [
        "stream",
        "append",
        "orders",
        r#"{"n":1}"#,
        "two",
        "--partition-key",
        "ada",
        "--header",
        "source=web",
    ];
    let ids = flo.text(&append);
    let ids: Vec<&str> = ids.lines().collect();
    let page = flo.json(&["stream", "read", "orders"]);
    let expected = json!({
        "stream_id": ids[0], "stream": "orders", "partition": 0, "partition_key": "ada",
        "payload": {"n": 1}, "headers": {"source": "web"},
    });
    assert_eq!(page["items"][0], expected);
    assert_eq!(page["items"][1]["payload"], "two");
    assert_eq!(page["next_page_token"], Value::Null);
    let first = flo.json(&["stream", "read", "orders", "--limit", "1"]);
    let next = first["next_page_token"].as_str().expect("there is more");
    let second = flo.json(&["stream", "read", "orders", "--page-token", next]);
    assert_eq!(second["items"][0]["stream_id"], ids[1]);

    let _ = flo.text(&["stream", "trim", "orders", "--keep", "1"]);
    let info = flo.json(&["stream", "info", "orders"]);
    assert_eq!(
        (&info["record_count"], &info["first_id"]),
        (&json!(1), &json!(ids[1]))
    );
    assert_eq!(flo.json(&["stream", "list"])["items"], json!([info]));
    flo.refused(&["stream", "create", "orders", "--partitions", "2"])
        .expect(3, "stream_exists")
        .says("partitions is 1, not 2");
    assert_eq!(flo.json(&["stream", "delete", "orders"])["deleted"], true);
    flo.refused(&["stream", "read", "orders"])
        .expect(1, "stream_not_found");
}

#[test]
fn a_worker_waits_for_its_stream_is_counted_and_leaves_when_it_is_stopped() {
    let node = DevNode::start();
    let flo = node.flo();
    let output = node.scratch().path("seen");
    let script = format!(
        "cat >> {0}; echo \" $FLO_RECORD_ID\" >> {0}",
        output.display()
    );
    let command = RecordCommand {
        stream: "orders",
        group: "billing",
        script: &script,
    };
    let mut worker = CommandWorker::consume(&flo, node.scratch(), "w1", command);
    let id = flo.text(&["stream", "append", "orders", "hello"]);
    await_group(&flo, |group| group["acked_count"] == 1);
    let seen = fs::read_to_string(output).expect("the program wrote it");
    assert_eq!(seen, format!("hello {id}\n"));

    let info = flo.json(&["worker", "info", "w1"]);
    assert_eq!(info["worker_type"], "stream", "{info}");
    let process = &info["processes"][0];
    assert_eq!(
        (&process["name"], &process["kind"], &process["run_count"]),
        (
            &json!("orders/billing"),
            &json!("stream_consumer"),
            &json!(1)
        )
    );
    assert!(worker.drain().success());
    let group = flo.json(&["stream", "group", "info", "orders", "billing"]);
    assert_eq!(group["consumers"], json!([]), "{group}");
    flo.refused(&["worker", "info", "w1"])
        .expect(1, "worker_not_found");
}

/// Every record fails twice; the poisoned one always does. The leader is killed in the middle.
#[test]
fn a_storm_of_refusals_loses_nothing_and_poison_goes_to_the_dead_letter_stream() {
    const RECORDS_PER_NODE: usize = 20;
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let _ = flo.text(&["stream", "create", "orders", "--partitions", "4"]);
    let create = [
        "stream",
        "group",
        "create",
        "orders",
        "billing",
        "--max-deliveries",
        "4",
    ];
    let _ = flo.text(&create);
    let output = cluster.scratch().path("processed");
    let script = format!(
        "payload=$(cat); [ \"$FLO_ATTEMPT\" -lt 3 ] && exit 1; [ \"$payload\" = poison ] && exit 1; \
         echo \"$payload\" >> {}",
        output.display()
    );
    let command = RecordCommand {
        stream: "orders",
        group: "billing",
        script: &script,
    };
    let workers =
        ["w1", "w2"].map(|id| CommandWorker::consume(&flo, cluster.scratch(), id, command));
    let mut appended = BTreeSet::new();
    for id in cluster.ids() {
        let payloads: Vec<String> = (0..RECORDS_PER_NODE)
            .map(|number| format!("record-{id}-{number}"))
            .collect();
        for payload in &payloads {
            let append = [
                "stream",
                "append",
                "orders",
                payload,
                "--partition-key",
                payload,
            ];
            let _ = cluster.flo_at(id).text(&append);
        }
        appended.extend(payloads);
    }
    let _ = flo.text(&["stream", "append", "orders", "poison"]);
    await_group(&flo, |group| group["acked_count"].as_u64() > Some(5));
    let leader = cluster.leader();
    cluster.kill(leader);

    let settled = await_group(&flo, |group| {
        group["pending_count"] == 0 && group["lag"] == 0 && group["dead_letter_count"] == 1
    });
    assert_eq!(settled["acked_count"], json!(appended.len()), "{settled}");
    let processed = fs::read_to_string(&output).expect("the program wrote it");
    let processed: BTreeSet<String> = processed.lines().map(ToOwned::to_owned).collect();
    assert_eq!(processed, appended);
    let dead = flo.json(&["stream", "read", "orders.billing.dlq"]);
    assert_eq!(dead["items"].as_array().map(Vec::len), Some(1), "{dead}");
    assert_eq!(dead["items"][0]["payload"], "poison", "{dead}");

    cluster.restart(leader);
    for mut worker in workers {
        assert!(worker.drain().success());
    }
    let _ = cluster.agreement();
}

/// Waits until the group `billing` of `orders` matches, and returns it.
fn await_group(flo: &Flo, is_reached: impl Fn(&Value) -> bool) -> Value {
    wait_until("the group to match", TIMEOUT, || {
        let info = ["-o", "json", "stream", "group", "info", "orders", "billing"];
        let answer = flo.run(&info);
        let group = serde_json::from_str(&answer.stdout).unwrap_or_default();
        if answer.code == 0 && is_reached(&group) {
            return Ok(group);
        }
        Err(answer.show())
    })
}
