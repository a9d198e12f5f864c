//! One workflow with every construct: it runs to its end, also while the leader is killed at every tenth transition.

use crate::files::fixture;
use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo, Scratch, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The actions of the workflow. Each call of one leaves a line in a file; its output is its input.
const ACTIONS: [&str; 13] = [
    "check-stock",
    "restock",
    "mail",
    "reserve",
    "release",
    "pick",
    "unpick",
    "render",
    "send",
    "ship",
    "return",
    "page-ops",
    "tidy",
];
/// Parcels of each order.
const PARCELS: u32 = 12;
/// Transitions between two kills.
const KILL_EVERY: usize = 10;

/// What the test does with a run that waits for its approval.
#[derive(Clone, Copy, Debug)]
enum Intervention {
    Approve,
    Reject,
    Cancel,
}

/// A run of the workflow.
#[derive(Clone, Copy, Debug)]
struct Order {
    run_id: &'static str,
    vm: &'static str,
    /// An order with a decision has an amount that needs the approval.
    decision: Option<Intervention>,
    /// Whether the step after the record fails.
    is_failing: bool,
}

/// All runs. The second one waits for the first one, which has the same concurrency key.
const ORDERS: [Order; 6] = [
    Order::new("first", "vm-1").decided(Intervention::Approve),
    Order::new("second", "vm-1"),
    Order::new("third", "vm-2"),
    Order::new("failing", "vm-3").failing(),
    Order::new("rejected", "vm-4").decided(Intervention::Reject),
    Order::new("cancelled", "vm-5").decided(Intervention::Cancel),
];

impl Order {
    const fn new(run_id: &'static str, vm: &'static str) -> Self {
        Self {
            run_id,
            vm,
            decision: None,
            is_failing: false,
        }
    }

    const fn decided(self, decision: Intervention) -> Self {
        Self {
            decision: Some(decision),
            ..self
        }
    }

    const fn failing(self) -> Self {
        Self {
            is_failing: true,
            ..self
        }
    }

    fn start(self, flo: &Flo) {
        let parcels: Vec<u32> = (0..PARCELS).collect();
        let amount = if self.decision.is_some() { 2_000 } else { 5 };
        let input =
            json!({"vm": self.vm, "amount": amount, "parcels": parcels, "fails": self.is_failing});
        let input = input.to_string();
        let start = ["workflow", "start", "order-fulfilment", &input];
        let _ = flo.text(&[&start[..], &["--run-id", self.run_id]].concat());
    }

    /// Carries out the decision once the run waits for it.
    fn decide(self, flo: &Flo) {
        let decision = self
            .decision
            .expect("only orders with a decision are decided");
        await_approval(flo, self.run_id);
        let verb: &[&str] = match decision {
            Intervention::Approve => &["approve", "--step", "gate"],
            Intervention::Reject => &["reject", "--step", "gate"],
            Intervention::Cancel => &["cancel", "--reason", "ordered twice"],
        };
        let _ = flo.text(&[&["workflow"], verb, &[self.run_id]].concat());
    }

    /// Whether the run ships its parcels and appends its record.
    fn is_shipped(self) -> bool {
        !matches!(
            self.decision,
            Some(Intervention::Reject | Intervention::Cancel)
        )
    }

    /// The phases before the end, as [`end_sequence`] shows them.
    fn expected_end(self) -> &'static [&'static str] {
        match self.decision {
            Some(Intervention::Reject) => {
                &["compensating", "compensation_completed", "workflow_failed"]
            }
            Some(Intervention::Cancel) => &[
                "compensating",
                "compensation_completed",
                "on_cancel",
                "tidy success",
                "workflow_cancelled",
            ],
            Some(Intervention::Approve) | None if self.is_failing => &[
                "compensating",
                "compensation_completed",
                "on_error",
                "page success",
                "workflow_failed",
            ],
            Some(Intervention::Approve) | None => &["workflow_completed"],
        }
    }
}

/// The workflow as it is published, with a short pause.
fn example() -> String {
    let text = fs::read_to_string(fixture("order-fulfilment.yaml")).expect("a fixture");
    changed(text, &[("PT15M", "100ms")])
}

/// The same, with a state, a record and perhaps a failure at the end, and with more compensations.
fn extended() -> String {
    let changes = [
        (
            "state: {optOut: false}",
            "state: {optOut: false, shipped: 0}\noutput: $.state",
        ),
        (
            "{run: \"@actions/check-stock\",",
            "{run: \"@actions/check-stock\", compensate: {run: \"@actions/restock\"},",
        ),
        (
            "{name: pick, run: \"@actions/pick\"}",
            "{name: pick, run: \"@actions/pick\", compensate: {run: \"@actions/unpick\"}}",
        ),
        (
            "concurrency: 10, do:",
            "concurrency: 2, merge: {shipped: sum}, do:",
        ),
        (
            "inputMapping: {p: \"$.parcel\"}",
            "inputMapping: {p: \"$.parcel\"}, set: {shipped: 1}, \
             compensate: {run: \"@actions/return\", inputMapping: {p: \"$.parcel\"}}",
        ),
        (
            "    transitions: {success: flo.Completed, failure: flo.Failed}\nonError:",
            "    transitions: {success: tell, failure: flo.Failed}
  tell:
    emit: {stream: shipments, key: $.input.vm, payload: {run: $.flo.run_id, shipped: $.state.shipped}}
    transitions: {success: last}
  last: {switch: [{when: input.fails, goto: fall}], default: flo.Completed}
  fall: {run: \"@actions/missing\", transitions: {success: flo.Completed, failure: flo.Failed}}
onError:",
        ),
    ];
    changed(example(), &changes)
}

fn changed(mut text: String, changes: &[(&str, &str)]) -> String {
    for (old, new) in changes {
        assert!(text.contains(old), "the fixture has no longer {old}");
        text = text.replace(old, new);
    }
    text
}

/// Registers the actions and starts a worker for them, which writes each call to a file: the run, the action and the
/// input.
fn work(flo: &Flo, scratch: &Scratch) -> CommandWorker {
    for action in ACTIONS {
        let retries = ["--max-retries", "9", "--retry-delay-ms", "20"];
        let _ = flo.text(&[&["action", "register", action], &retries[..]].concat());
    }
    let log = scratch.path("calls.log");
    let log = log.display();
    let script = format!(
        "input=$(cat); printf '%s %s %s\\n' \"$FLO_RUN_ID\" \"$FLO_ACTION\" \"$input\" >> {log}; sleep 0.2; \
         printf '%s' \"$input\""
    );
    let actions = ACTIONS.map(|name| (name, script.as_str()));
    CommandWorker::start(flo, scratch, "shop", &actions)
}

/// The calls of actions for a run, each once: the action and its input.
fn calls(scratch: &Scratch, run_id: &str) -> BTreeSet<String> {
    let log = fs::read_to_string(scratch.path("calls.log")).unwrap_or_default();
    let call = |line: &str| Some(line.strip_prefix(run_id)?.strip_prefix(' ')?.to_owned());
    log.lines().filter_map(call).collect()
}

/// Waits until the run waits for a decision.
fn await_approval(flo: &Flo, run_id: &str) {
    wait_until("an approval", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["waiting_for"] == "approval" {
            true => Ok(()),
            false => Err(run.to_string()),
        }
    });
}

#[test]
fn the_example_has_no_finding_and_runs_to_its_end() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = fixture("order-fulfilment.yaml");
    let validated = flo.text(&["workflow", "validate", "-f", &file]);
    assert!(validated.ends_with("is valid"), "{validated}");
    let file = node.scratch().write("short.yaml", example());
    let mut worker = work(&flo, node.scratch());
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let input = json!({"amount": 2000, "parcels": [1, 2, 3]}).to_string();
    let start = ["workflow", "start", "order-fulfilment", &input];
    let run_id = flo.text(&[&start[..], &["--run-id", "order"]].concat());
    await_approval(&flo, &run_id);
    let _ = flo.text(&["workflow", "approve", &run_id, "--step", "gate"]);
    let run = ended(&flo, &run_id);
    assert_eq!(run["terminal"], "flo.Completed", "{run}");
    let shipped = json!([{"p": 1}, {"p": 2}, {"p": 3}]);
    assert_eq!(run["output"], shipped, "{run}");
    assert_eq!(run["steps"]["decide"]["outcome"], "gate", "{run}");
    assert_eq!(run["steps"]["gate"]["outcome"], "approved", "{run}");
    assert!(worker.drain().success());
}

/// The run, once it has ended.
fn ended(flo: &Flo, run_id: &str) -> Value {
    wait_until("the end of the run", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["completed_at_ms"].is_u64() {
            true => Ok(run),
            false => Err(run.to_string()),
        }
    })
}

/// What a run has done. Two runs of the same order are equal, however often actions were called.
#[derive(Debug, PartialEq)]
struct Ending {
    /// Where the run ended, and with what.
    run: Value,
    /// The events without times and ids, except the starts of attempts. Sorted, since branches are concurrent.
    events: Vec<String>,
    /// The calls of its actions, each once.
    calls: BTreeSet<String>,
}

impl Ending {
    fn read(flo: &Flo, scratch: &Scratch, run_id: &str) -> Self {
        let run = ended(flo, run_id);
        let fields = [
            "status",
            "terminal",
            "detail",
            "error",
            "state",
            "compensation",
        ];
        let kept = fields.map(|field| (field, run[field].clone()));
        let mut kept = BTreeMap::from(kept);
        kept.insert("each", run["steps"]["each"]["output"].clone());
        // Other outputs can have times.
        if run["status"] == "completed" {
            kept.insert("output", run["output"].clone());
        }
        let mut events: Vec<String> = flo
            .json_lines(&["workflow", "history", run_id])
            .iter()
            .filter(|event| event["type"] != "action_started")
            .map(|event| {
                ["type", "scope", "step", "detail", "outcome"]
                    .map(|field| event[field].as_str().unwrap_or_default())
                    .join(" ")
            })
            .collect();
        events.sort();
        Self {
            run: json!(kept),
            events,
            calls: calls(scratch, run_id),
        }
    }
}

/// Starts all orders, and a worker for their actions.
fn begin(flo: &Flo, scratch: &Scratch) -> CommandWorker {
    let file = scratch.write("extended.yaml", extended());
    let worker = work(flo, scratch);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    ORDERS.iter().for_each(|order| order.start(flo));
    worker
}

/// All orders on a node that nothing disturbs.
fn undisturbed() -> Vec<Ending> {
    let node = DevNode::start();
    let flo = node.flo();
    let mut worker = begin(&flo, node.scratch());
    let decided = ORDERS.iter().filter(|order| order.decision.is_some());
    decided.for_each(|order| order.decide(&flo));
    let endings = ORDERS.map(|order| Ending::read(&flo, node.scratch(), order.run_id));
    assert!(worker.drain().success());
    endings.into()
}

/// Transitions so far: completed steps, ended iterations and completed compensations.
fn transitions(events: &[Value]) -> usize {
    let is_transition = |event: &&Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        [
            "step_completed",
            "iteration_ended",
            "compensation_completed",
        ]
        .contains(&kind)
    };
    events.iter().filter(is_transition).count()
}

/// Whether the run waits for the test, or for another run.
fn is_idle(events: &[Value]) -> bool {
    let last = events.last().and_then(|event| event["type"].as_str());
    ["approval_opened", "concurrency_waiting"]
        .map(Some)
        .contains(&last)
}

/// Kills the leader, and restarts it when another node leads.
fn kill_and_restart_leader(cluster: &mut Cluster) {
    let leader = cluster.leader();
    cluster.kill(leader);
    let _ = cluster.leader();
    cluster.restart(leader);
}

/// Kills the leader after every tenth transition until all runs have ended. A decision is carried out right before each of
/// the second, third and fourth kills. Transitions are counted between the kills, so a few more may be made before one.
///
/// # Panics
/// If fewer than half of the kills took place.
fn disturb(cluster: &mut Cluster) {
    let flo = cluster.flo();
    let mut decided = ORDERS.iter().filter(|order| order.decision.is_some());
    let mut next = KILL_EVERY;
    let (mut kills_count, mut made) = (0, 0);
    let mut histories = ORDERS.map(|_| Vec::new());
    wait_until("the ends of all runs", TIMEOUT * 4, || {
        for (order, events) in ORDERS.iter().zip(&mut histories) {
            if !has_ended(events) {
                *events = flo.json_lines(&["workflow", "history", order.run_id]);
            }
        }
        made = histories.iter().map(|events| transitions(events)).sum();
        let is_open = |events: &&Vec<Value>| !has_ended(events);
        let mut open = histories.iter().filter(is_open).peekable();
        if open.peek().is_none() {
            return Ok(());
        }
        if made >= next || open.all(|events| is_idle(events)) {
            if kills_count > 0
                && let Some(order) = decided.next()
            {
                order.decide(&flo);
            }
            println!("after {made} transitions: the leader is killed");
            kill_and_restart_leader(cluster);
            kills_count += 1;
            next = made + KILL_EVERY;
        }
        Err(format!("{made} transitions were made"))
    });
    let expected_count = made / (2 * KILL_EVERY);
    assert!(
        kills_count >= expected_count.max(4),
        "only {kills_count} kills for {made} transitions"
    );
}

fn has_ended(events: &[Value]) -> bool {
    let last = events.last().and_then(|event| event["type"].as_str());
    last.is_some_and(|kind| kind.starts_with("workflow_") && kind != "workflow_started")
}

#[test]
fn runs_lose_nothing_while_the_leader_is_killed_at_every_tenth_transition() {
    let expected = undisturbed();
    let called: BTreeSet<&str> = expected
        .iter()
        .flat_map(|ending| &ending.calls)
        .filter_map(|call| call.split(' ').next())
        .collect();
    assert_eq!(called, BTreeSet::from(ACTIONS), "each action is called");

    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let mut worker = begin(&flo, cluster.scratch());
    disturb(&mut cluster);
    cluster.await_health();
    for (order, expected) in ORDERS.into_iter().zip(expected) {
        let ending = Ending::read(&flo, cluster.scratch(), order.run_id);
        assert_eq!(ending, expected, "{order:?}");
        expect_end(order, &ending.run);
        let events = flo.json_lines(&["workflow", "history", order.run_id]);
        assert_eq!(end_sequence(&events), order.expected_end(), "{order:?}");
        expect_undone(&flo, order, &events);
    }
    expect_records(&flo);
    assert!(worker.drain().success());
}

/// The run ended where its order leads.
fn expect_end(order: Order, run: &Value) {
    let terminal = match order.decision {
        Some(Intervention::Reject) => "Rejected",
        Some(Intervention::Cancel) => "flo.Cancelled",
        Some(Intervention::Approve) | None if order.is_failing => "flo.Failed",
        Some(Intervention::Approve) | None => "flo.Completed",
    };
    assert_eq!(run["terminal"], terminal, "{run}");
    let shipped = if order.is_shipped() { PARCELS } else { 0 };
    let state = json!({"optOut": false, "shipped": shipped});
    assert_eq!(run["state"], state, "{run}");
    if terminal == "flo.Completed" {
        assert_eq!(run["output"], state, "{run}");
    }
}

/// The phases before the end, with the steps of the handler, and the end. Compensations in a row are one item.
fn end_sequence(events: &[Value]) -> Vec<String> {
    let shown = |event: &Value| {
        let field = |name: &str| event[name].as_str().unwrap_or_default();
        match field("type") {
            "phase_changed" => Some(field("detail").to_owned()),
            "step_completed" if ["onError", "onCancel"].contains(&field("scope")) => {
                Some(format!("{} {}", field("step"), field("outcome")))
            }
            "workflow_started" => None,
            kind if kind == "compensation_completed" || kind.starts_with("workflow_") => {
                Some(kind.to_owned())
            }
            _ => None,
        }
    };
    let mut phases: Vec<String> = events.iter().filter_map(shown).collect();
    phases.dedup();
    phases
}

/// If the run compensates, each completed step with a compensation was undone exactly once, in the reverse order of
/// completion; otherwise none was.
fn expect_undone(flo: &Flo, order: Order, events: &[Value]) {
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let done = events.iter().filter_map(|event| {
        let step = event["step"].as_str()?;
        match event["type"].as_str()? {
            "iteration_ended" => Some(format!("parcel {}", event["detail"].as_str()?)),
            "step_completed" if ["start", "reserve", "pick"].contains(&step) => {
                Some(step.to_owned())
            }
            _ => None,
        }
    });
    let done: Vec<String> = done.collect();
    let mut returned = of("awaiting_action")
        .filter(|event| event["detail"] == "return")
        .filter_map(|event| event["action_run_id"].as_str())
        .map(|id| flo.json(&["action", "status", id])["input"]["p"].clone());
    let undone = of("compensation_completed").filter_map(|event| event["step"].as_str());
    let undone: Vec<String> = undone
        .map(|step| match step {
            "each-item" => format!("parcel {}", returned.next().unwrap_or_default()),
            _ => step.to_owned(),
        })
        .collect();
    let is_undone = order.expected_end().contains(&"compensating");
    let expected = done.into_iter().rev().filter(|_| is_undone);
    assert_eq!(undone, expected.collect::<Vec<_>>(), "{order:?}");
    assert_eq!(returned.next(), None, "{order:?}");
}

/// Each run that has shipped has appended one record, with what the state had then.
fn expect_records(flo: &Flo) {
    let page = flo.json(&["stream", "read", "shipments", "--limit", "100"]);
    let records = page["items"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<String> = records
        .iter()
        .map(|record| record["payload"].to_string())
        .collect();
    found.sort();
    let shipped = ORDERS.into_iter().filter(|order| order.is_shipped());
    let mut expected: Vec<String> = shipped
        .map(|order| json!({"run": order.run_id, "shipped": PARCELS}).to_string())
        .collect();
    expected.sort();
    assert_eq!(found, expected);
}
