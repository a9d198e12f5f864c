//! Every example is run.

use crate::files::{example, example_workflows};
use crate::history::{self, Event};
use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

/// How an example is run.
struct Scenario {
    workflow: &'static str,
    input: &'static str,
    /// The namespace and the stream whose records start it; otherwise a call does.
    trigger: Option<(&'static str, &'static str)>,
    signal: Option<&'static str>,
    output: Value,
}

/// Every example.
fn scenarios() -> Vec<Scenario> {
    let scenario = |workflow, input, output| Scenario {
        workflow,
        input,
        trigger: None,
        signal: None,
        output,
    };
    let shipped = json!({"shipped": true, "order": {"order_id": "A-17", "amount": 5000}});
    vec![
        scenario("check-payment", "{}", json!({"paid": true})),
        scenario(
            "checkout",
            r#"{"order_id": "A-17", "amount": 5}"#,
            json!({"order_id": "A-17", "payment_id": "pay-1"}),
        ),
        scenario(
            "customer-orders",
            r#"{"customer_id": "c-1", "company_domain": "example.org", "amount": 5, "timestamp": 1}"#,
            json!({"payment_id": "pay-1"}),
        ),
        scenario("flaky-service", "{}", json!("at last")),
        scenario("fulfillment", r#"{"id": 1}"#, json!({"id": 1})),
        Scenario {
            signal: Some("approval"),
            ..scenario(
                "order-processing",
                r#"{"order_id": "A-17", "amount": 5000}"#,
                shipped,
            )
        },
        Scenario {
            trigger: Some(("prod", "orders")),
            ..scenario("order-processor", r#"{"id": 3}"#, json!({"id": 3}))
        },
        scenario(
            "payment-flow",
            r#"{"amount": 5}"#,
            json!({"payment_id": "pay-1"}),
        ),
        scenario(
            "payment-processing",
            r#"{"customer_id": "c-1", "amount": 5, "idempotency_key": "k-1"}"#,
            json!({"customer_id": "c-1", "template": "payment_success"}),
        ),
        scenario("process-order", r#"{"id": 2}"#, json!({"id": 2})),
        scenario("reconcile-accounts", "{}", json!("all is well")),
        scenario(
            "reconcile-interval",
            r#"{"mode": "full"}"#,
            json!({"mode": "full"}),
        ),
    ]
}

/// The actions of the examples, as commands. Those that succeed only on a later attempt
/// leave a mark in the folder.
fn actions(folder: &str) -> Vec<(&'static str, String)> {
    let later = |code: u8, answer: &str| {
        let mark = format!("{folder}/$FLO_ACTION-$FLO_RUN_ID");
        format!("if mkdir {mark}; then exit {code}; else echo '{answer}'; fi")
    };
    let failure = "echo failure > \"$FLO_OUTCOME_FILE\"";
    vec![
        (
            "charge-payment",
            r#"echo '{"payment_id": "pay-1"}'"#.to_owned(),
        ),
        (
            "charge-stripe",
            r#"echo '{"payment_id": "stripe-1"}'"#.to_owned(),
        ),
        ("check-approval-needed", failure.to_owned()),
        ("check-fraud", "cat".to_owned()),
        ("check-payment-status", later(75, r#"{"paid": true}"#)),
        ("create-shipment", "cat".to_owned()),
        (
            "enrich-customer",
            r#"echo '{"email": "ada@example.org"}'"#.to_owned(),
        ),
        ("flaky-service", later(1, "at last")),
        ("process-order", "cat".to_owned()),
        ("reconcile", "cat".to_owned()),
        ("reconcile-report", "echo '\"all is well\"'".to_owned()),
        ("send-notification", "cat".to_owned()),
        ("validate-order", "cat".to_owned()),
    ]
}

#[test]
fn every_example_runs_to_its_end() {
    let node = DevNode::start();
    let flo = node.flo();
    let mut files: Vec<String> = example_workflows()
        .into_iter()
        .map(|name| example(&format!("workflows/{name}")))
        .collect();
    assert_eq!(files.len(), scenarios().len(), "each of {files:?} is run");
    // Children first, so that every target exists.
    files.sort_by_key(|file| file.ends_with("checkout.yaml"));
    for file in &files {
        let _ = flo.text(&["workflow", "create", "-f", file]);
    }
    let module = example("actions/ship-order.wat");
    let _ = flo.text(&["action", "register", "ship-order", "--wasm", &module]);
    let actions = actions(node.scratch().path("").to_str().expect("UTF-8"));
    let actions: Vec<(&str, &str)> = actions
        .iter()
        .map(|(name, script)| (*name, script.as_str()))
        .collect();
    let mut worker = CommandWorker::start(&flo, node.scratch(), "examples", &actions);

    let start = |scenario: Scenario| (start(&flo, &scenario), scenario);
    let started: Vec<(String, Scenario)> = scenarios().into_iter().map(start).collect();
    for (run_id, scenario) in &started {
        if let Some(signal) = scenario.signal {
            let _ = flo.text(&["workflow", "signal", run_id, "--type", signal]);
        }
        expect_completion(&flo, run_id, scenario);
    }
    assert!(worker.drain().success());
}

/// Starts the run of a scenario, and returns it.
fn start(flo: &Flo, scenario: &Scenario) -> String {
    let Scenario {
        workflow, input, ..
    } = scenario;
    let Some((namespace, stream)) = scenario.trigger else {
        let key = ["--idempotency-key", workflow];
        return flo.text(&[&["workflow", "start", workflow, input], &key[..]].concat());
    };
    let _ = flo.text(&["-n", namespace, "stream", "append", stream, input]);
    wait_until("a run for the record", TIMEOUT, || {
        let runs = flo.json(&["workflow", "runs", "--workflow", workflow]);
        let run_id = runs["items"][0]["run_id"].as_str();
        run_id.map(ToOwned::to_owned).ok_or(runs.to_string())
    })
}

fn expect_completion(flo: &Flo, run_id: &str, scenario: &Scenario) {
    let events = flo.json_lines(&["workflow", "history", run_id, "--follow"]);
    let events: Vec<Event> = events.into_iter().map(Event::from).collect();
    history::expect_sound(run_id, &events);
    let run = flo.json(&["workflow", "status", run_id]);
    assert_eq!(run["workflow"], scenario.workflow);
    assert_eq!(run["output"], scenario.output, "{run}");
}
